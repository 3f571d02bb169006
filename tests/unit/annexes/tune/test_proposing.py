import json
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from spark_app.annexes.tune.proposing import forecast_lines, judge, propose
from spark_app.errors import InputError
from spark_app.eventlog.comparison import baselines
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.settings import Settings, load_settings, read_spark_properties
from tests.unit.conftest import Printed
from tests.unit.eventlog.made import Run, Stage, Task

MIB: Final = 1 << 20
PARTITIONS: Final = "spark.sql.shuffle.partitions"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Those of a home of its own."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    return load_settings()


def stored(
    settings: Settings, number: int, *, shuffled: int = 10, at: int = 1000, value: str | None = None
) -> RunProfile:
    """A successful run, stored."""
    changed = {} if value is None else {PARTITIONS: value}
    profile = Run(1000, [Stage("sum", 0, 900, [Task(0, 900)])], id=f"app-{number}", at=at, settings=changed).summary
    profile = replace(profile, largest_shuffle_bytes=shuffled * MIB)
    baselines.save(settings.profiles_path, profile)
    return profile


def test_the_last_runs_propose_and_a_later_run_tells(settings: Settings, printed: Printed, tmp_path: Path) -> None:
    """From the table and the file to the share of forecasts that came true."""
    for number in range(3):
        stored(settings, number, at=1000 + number)
    propose(printed.terminal, settings, "shop", tmp_path / "tuned.conf", json=False)
    assert f"{PARTITIONS}=2" in printed.out.getvalue()
    assert "largest shuffle 9.3 MiB to 10.7 MiB" in printed.out.getvalue()
    assert read_spark_properties(tmp_path / "tuned.conf") == {PARTITIONS: "2"}
    later = stored(settings, 9, at=4 * 10**12, value="2")
    assert forecast_lines(*judge(printed.terminal, settings, later)) == [
        f"forecast for {PARTITIONS}=2: largest shuffle 9.3 MiB to 10.7 MiB, was 10.0 MiB: came true",
        "1 of 1 forecast came true",
    ]


def test_the_document_has_the_proposals(settings: Settings, printed: Printed) -> None:
    """With the bounds of their forecasts."""
    for number in range(3):
        stored(settings, number, at=1000 + number)
    propose(printed.terminal, settings, "shop", None, json=True)
    (found,) = json.loads(printed.out.getvalue())["proposals"]
    assert (found["setting"], found["value"]) == (PARTITIONS, "2")
    assert 9 * MIB < found["forecast"]["low"] < found["forecast"]["high"] < 11 * MIB


def test_too_few_runs_are_an_error(settings: Settings, printed: Printed) -> None:
    """It says how many are needed, and what stores them."""
    stored(settings, 1)
    with pytest.raises(InputError, match="'shop' needs 3 successful runs, and there are 1"):
        propose(printed.terminal, settings, "shop", None, json=False)
