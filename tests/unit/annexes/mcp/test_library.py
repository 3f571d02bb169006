import os
from dataclasses import replace
from pathlib import Path

import pytest

from spark_app.annexes.mcp.library import MAX_READ, Library
from spark_app.errors import InputError
from spark_app.runs import run_record
from spark_app.settings import Settings
from tests.unit.annexes.mcp.conftest import Write
from tests.unit.eventlog import log
from tests.unit.run_records import example_record

WHOLE = [log.started(), log.job(0, []), log.job_ended(0), log.ended()]


def recorded(settings: Settings, name: str, log: Path) -> Path:
    """A run whose record names an event log."""
    folder = settings.runs_path / name
    run_record.write(replace(example_record(folder), event_log=str(log)), note=pytest.fail)
    return folder


def test_runs_and_logs_are_listed_with_the_last_written_first(library: Library, write: Write) -> None:
    """Each with what its first lines or its record say."""
    first = write("app-1", WHOLE)
    os.utime(first, (1_000_000, 1_000_000))
    recorded(library.settings, "r1", first)
    rows = [entry.describe() for entry in library.entries()]
    names = ("run", "kind", "application", "outcome", "duration_ms")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("r1", "spark-app run", "etl.customers 2024-01-01", "succeeded", 1240),
        ("app-1", "event log", "shop", None, None),
    ]


def test_what_is_no_log_is_listed_with_a_remark(library: Library, write: Write) -> None:
    """So is a run whose record cannot be read; neither hides the others."""
    write("app-1", WHOLE)
    (library.settings.events_path / "notes.txt").write_text("no log")
    (library.settings.runs_path / "broken").mkdir(parents=True)
    (library.settings.runs_path / "broken" / "run.json").write_text("{")
    rows = {entry.name: entry.describe() for entry in library.entries()}
    assert rows.keys() == {"app-1", "notes.txt", "broken"}
    assert {name for name, row in rows.items() if "remark" in row} == {"notes.txt", "broken"}


def test_a_name_means_a_run_a_log_or_an_application(library: Library, write: Write) -> None:
    """The run in its log; the id of an application also means a log with a codec in its name, or one that grows."""
    written = write("app-7.zstd.inprogress", WHOLE)
    recorded(library.settings, "r1", written)
    found = library.source("r1")
    assert (found.log, found.run and found.run.folder.name) == (written, "r1")
    for name in ("app-7", "app-7.zstd"):
        assert (library.source(name).log, library.source(name).run) == (written, None)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "spark-events/app-1", "", ".", "..", "x"])
def test_nothing_outside_of_the_folders_can_be_named(
    library: Library, write: Write, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of an observed program may have told the assistant to read something else, also where the server runs."""
    monkeypatch.chdir(library.settings.home)
    write("app-1", WHOLE)
    (library.settings.home / "secret").write_text("{}")
    (library.settings.home / "x").write_text("{}")
    with pytest.raises(InputError, match="list_runs lists them"):
        library.source(name)


def test_a_log_is_read_again_only_after_it_has_grown(library: Library, write: Write) -> None:
    """An application that runs is seen as it is now."""
    written = write("app-1.inprogress", WHOLE[:2])
    before = library.analysis(written)
    assert library.analysis(written) is before
    write("app-1.inprogress", WHOLE)
    assert library.analysis(written).reading.app.ended == 9000


def test_few_logs_are_kept_in_memory(library: Library, write: Write) -> None:
    """Those that were asked for last."""
    logs = [write(f"app-{number}", WHOLE) for number in range(MAX_READ + 1)]
    first, *others = [library.analysis(path) for path in logs]
    assert [library.analysis(path) for path in logs[1:]] == others
    assert library.analysis(logs[0]) is not first
