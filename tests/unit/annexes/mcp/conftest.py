from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from spark_app.annexes.mcp.library import Library
from spark_app.annexes.mcp.tools import Tools
from spark_app.eventlog.diagnoses.thresholds import load_thresholds
from spark_app.settings import Settings, load_settings
from tests.unit.eventlog.log import Line
from tests.unit.report import made

Write = Callable[[str, Iterable[Line]], Path]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home folder without runs, and with an empty folder of event logs."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    (tmp_path / "spark-events").mkdir()
    return load_settings()


@pytest.fixture
def write(settings: Settings) -> Write:
    """Writes an event log of some lines."""
    return lambda name, lines: made.written(settings.events_path / name, list(lines))


@pytest.fixture
def library(settings: Settings) -> Library:
    """What the tools may read of the home folder."""
    return Library(settings, settings.events_path, load_thresholds(None))


@pytest.fixture
def tools(library: Library) -> Tools:
    """The tools."""
    return Tools(library)
