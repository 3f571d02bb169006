"""What explains real runs with one thing planted, whose logs `tests.compare.record` has kept."""

import re
from itertools import permutations
from pathlib import Path
from typing import Final

import pytest
import zstandard

from spark_app.eventlog.comparison.compare import compare
from tests.compare.cases import (
    EQUAL,
    OTHER_JOIN,
    PLANTED,
    SAME_JOIN,
    Planted,
    assert_first,
    assert_other_join_is_noise,
)
from tests.compare.record import HERE, is_recorded, recorded

RECORDED: Final = [planted for planted in PLANTED if is_recorded(planted.run)]


def test_at_least_eight_causes_are_recorded() -> None:
    """Of most kinds of causes there is a real run to try."""
    assert len({planted.kind for planted in RECORDED}) >= 8


@pytest.mark.parametrize("planted", RECORDED, ids=lambda planted: planted.run.name)
def test_what_was_planted_in_a_real_run_is_ranked_first(planted: Planted) -> None:
    """One thing was out of order: it is what explains most of the difference, with its setting if it is one."""
    assert_first(compare([recorded(one) for one in planted.before], recorded(planted.run)), planted)


def test_equal_real_runs_have_no_cause() -> None:
    """Nothing was out of order, nothing is found: neither beside one run nor beside all others."""
    runs = [recorded(one) for one in EQUAL if is_recorded(one)]
    pairs = [compare(before, now) for before, now in permutations(runs, 2)]
    of_all = [compare([one for one in runs if one is not now], now) for now in runs]
    assert [compared.sentences for compared in [*pairs, *of_all] if compared.causes] == []
    texts = {(change.what, change.text) for compared in pairs for change in compared.changes}
    assert texts >= {("settings", "the same"), ("plans", "the same"), ("rows read", "24,202, the same")}
    assert {what for what, _ in texts} & {"setting", "plan"} == set()


def test_a_slow_python_function_is_named_where_it_runs() -> None:
    """The cause has its place, its name and its numbers; no advice is about broadcasts."""
    (planted,) = (each for each in RECORDED if each.run.name == "python-function")
    first, *_ = compare([recorded(one) for one in planted.before], recorded(planted.run)).causes
    assert "tasks of price the sales [" in first.text
    assert re.search(r"added (Batch|Arrow)EvalPython price \(12,000 rows, [\d min.]+ s of task time\)", first.text)
    assert first.advice is not None
    assert "pyspark.sql.functions" in first.advice
    assert "broadcast" not in first.advice


@pytest.mark.parametrize("log", sorted(HERE.iterdir()), ids=lambda log: log.stem)
def test_a_recorded_log_names_nothing_of_its_machine(log: Path) -> None:
    """Files of the run, the project and Python lie where they lie nowhere."""
    content = zstandard.ZstdDecompressor().decompressobj().decompress(log.read_bytes())
    assert set(re.findall(rb"(?:file:|at )/+(\w+)", content)) <= {b"work", b"project", b"python"}
    assert set(re.findall(rb'"Host":"([^"]*)"', content)) <= {b"localhost", b"127.0.0.1"}


def test_another_join_is_named_though_the_time_is_the_same() -> None:
    """The table of what changed has it."""
    assert_other_join_is_noise(compare(recorded(SAME_JOIN), recorded(OTHER_JOIN)))
