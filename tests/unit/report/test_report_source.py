import os
from pathlib import Path

import pytest

from spark_app.errors import InputError
from spark_app.report import report_source
from spark_app.settings import Settings, load_settings
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.report.conftest import TRACE, record_of


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Everything below one folder."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    (tmp_path / "spark-events").mkdir()
    return load_settings()


def test_a_run_is_found_by_its_id_and_by_its_folder(run_folder: Path, settings: Settings) -> None:
    """Both mean the run, and the log that its record names, moved or not."""
    written = made.written(settings.events_path / "app-1", [log.started()])
    record_of(run_folder, event_log="file:///elsewhere/app-1")
    for name in (run_folder.name, str(run_folder)):
        found = report_source.source(name, settings)
        assert (found.log, found.run and found.run.folder) == (written, run_folder)


def test_the_log_of_a_killed_run_is_that_with_its_trace(run_folder: Path, settings: Settings) -> None:
    """It left no record of where its log is."""
    another = made.written(settings.events_path / "app-2", [log.started()])
    os.utime(another, (2e9, 2e9))  # the newest is looked at first
    mine = made.written(settings.events_path / "app-1", [log.started(), log.job(0, [], traceparent=TRACE)])
    assert report_source.source(run_folder.name, settings).log == mine


def test_a_log_that_is_gone_is_named(run_folder: Path, settings: Settings) -> None:
    """The message says where it should be."""
    record_of(run_folder, event_log="file:///elsewhere/app-1")
    with pytest.raises(InputError, match="not at file:///elsewhere/app-1"):
        report_source.source(run_folder.name, settings)


def test_an_unknown_name_is_refused_with_both_places(settings: Settings) -> None:
    """The message says where runs and logs were sought."""
    with pytest.raises(InputError, match=r"no run 'nothing' in .*, and no event log at"):
        report_source.source("nothing", settings)
