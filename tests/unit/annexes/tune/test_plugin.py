"""What `spark-app compare` says of forecasts."""

from dataclasses import replace
from pathlib import Path

import pytest

from spark_app.annexes.tune import forecasts
from spark_app.annexes.tune.history import Interval, Proposal
from tests.unit.commands.test_compare import BEFORE, NOW, compared, write_log
from tests.unit.eventlog.made import Run


def test_the_document_has_the_forecasts_that_the_run_decides(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later run decides none."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    home = tmp_path
    tried = Run(1000, NOW.stages, settings={"spark.a": "1"}, at=NOW.at, id="app-2")
    before, now = (write_log(home / "spark-events", run) for run in (BEFORE, tried))
    proposal = Proposal("spark.a", "1", None, "why", "time of tasks", Interval(1, 2))
    forecasts.add(home / "reports" / "tuning" / "forecasts", "shop", [proposal], made_at=1)
    (found,) = compared(capsys, now, before)["judged_forecasts"]
    assert (found["setting"], found["value"], found["low"], found["high"]) == ("spark.a", "1", 1, 2)
    assert found["measured"] > 2
    assert not found["came_true"]
    later = write_log(home / "spark-events", replace(tried, id="app-3", at=NOW.at + 1))
    assert compared(capsys, later, before)["judged_forecasts"] == []
