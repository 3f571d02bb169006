"""What options write of samples of stacks."""

from pathlib import Path

import pytest

from spark_app.__main__ import run
from tests.unit.commands.test_compare import BEFORE, NOW, write_log
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.stack_samples.made import beside


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything below one folder."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    return tmp_path


def test_other_viewers_get_a_file_for_each_stage(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--profile-out` writes them where there are samples; the report has the picture."""
    stage = [log.job(0, [0]), log.stage(0), log.task(1, 0), log.stage(0, end=2900), log.job_ended(0)]
    written = made.written(home / "log", [log.started(), log.executor(), *stage, log.ended()])
    command = ["report", str(written), "--profile-out", str(home / "out")]
    assert run(command) != 0
    assert "there are no samples of stacks beside" in capsys.readouterr().err
    beside(written)
    assert run(command) == 0
    assert "2 profiles in" in capsys.readouterr().err
    assert (home / "out" / "stage-0-0.collapsed").is_file()
    assert "Where the time goes inside stages" in (home / "reports" / "app-1.html").read_text()


def test_functions_that_grew_are_drawn(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--flame-graph` writes a page where both runs have samples of their stacks."""
    now, before, page = write_log(home, NOW), write_log(home, BEFORE), home / "deep" / "grew.html"
    beside(now, executor="e1", task=0, udf=200)
    command = ["compare", str(now), str(before), "--flame-graph", str(page)]
    assert run(command) != 0
    assert "both have samples of stacks" in capsys.readouterr().err
    beside(before, executor="e1", task=0, udf=40)
    assert run(command) == 0
    assert "Which functions grew" in page.read_text()
