from pathlib import Path
from typing import Any, Final

import pytest

from app.eventlog.attribution import Kind
from app.eventlog.compare import Comparison, compare
from app.eventlog.record import Summary
from tests.compare.runs import make_tables, run

SORTS: Final = {"sorted_rows": 800_000}
LITTLE_AT_ONCE: Final = {
    "spark.shuffle.spill.numElementsForceSpillThreshold": "3200",
    "spark.sql.windowExec.buffer.spill.threshold": "3200",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables; the files of Spark are warm when the first run counts."""
    made = tmp_path_factory.mktemp("planted")
    make_tables(made)
    run(made, "warm-up")
    return made


@pytest.fixture(scope="module")
def usual(folder: Path) -> list[Summary]:
    """Three earlier runs with nothing out of order."""
    return [run(folder, f"usual {number}") for number in range(3)]


@pytest.mark.parametrize(
    ("kind", "planted", "properties"),
    [
        pytest.param("input", {"sales": "more_sales"}, {}, id="three times the sales"),
        pytest.param("skew", {"sales": "hot_sales"}, {}, id="a shop that has most sales"),
        pytest.param("gc", {"collected_every": 60}, {}, id="a library that asks for garbage collections"),
        pytest.param("retries", {"is_failing": True}, {}, id="tasks that fail when they are nearly done"),
        pytest.param("driver", {"driver_seconds": 15}, {}, id="a driver that is busy with something else"),
        pytest.param("queueing", {"occupied_seconds": 15}, {}, id="another job that holds the cores"),
        pytest.param("cores", {}, {"spark.master": "local[1,4]"}, id="one core in place of four"),
        pytest.param("plan", {}, {"spark.sql.autoBroadcastJoinThreshold": "-1"}, id="no broadcast"),
        pytest.param("tasks", {}, {"spark.sql.shuffle.partitions": "2000"}, id="2,000 shuffle partitions"),
    ],
)
def test_what_was_planted_is_ranked_first(
    kind: Kind,
    planted: dict[str, Any],
    properties: dict[str, str],
    folder: Path,
    usual: list[Summary],
) -> None:
    """One thing is out of order: it is what explains most of the difference, with its setting if it is one."""
    compared = compare(usual, run(folder, kind, planted=planted, properties=properties))
    assert_first(compared, kind, properties)


def test_too_little_memory_is_ranked_first(folder: Path) -> None:
    """What sorts at ease takes long when little is kept in memory."""
    at_ease = run(folder, "at ease", planted=SORTS)
    now = run(folder, "spill", planted=SORTS, properties=LITTLE_AT_ONCE)
    assert_first(compare(at_ease, now), "spill", LITTLE_AT_ONCE)


def test_a_slower_source_is_ranked_first(folder: Path, usual: list[Summary]) -> None:
    """The same bytes from files that give them over fifteen seconds: tasks that wait, and do not work."""
    assert_first(compare(usual, run(folder, "slow source", source_seconds=15)), "storage", {})


def test_equal_runs_have_no_cause(folder: Path, usual: list[Summary]) -> None:
    """Nothing is out of order, nothing is found."""
    compared = compare(usual, run(folder, "equal"))
    assert compared.causes == [], compared.sentences


def assert_first(compared: Comparison, kind: Kind, properties: dict[str, str]) -> None:
    """A cause comes first, is most of the difference, and names the properties it comes from."""
    assert [cause.kind for cause in compared.causes][:1] == [kind], compared.sentences
    first = compared.causes[0]
    assert {name: now for name, (_, now) in first.settings.items()} == properties
    assert sum(cause.ms for cause in compared.causes) + compared.unexplained_ms == pytest.approx(compared.difference_ms)
