"""A compact file stands for the files before it, for whoever reads the log later or goes on to export it."""

from pathlib import Path
from typing import Final

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.bridge import compaction
from spark_app.eventlog.bridge.compaction import compact
from spark_app.eventlog.bridge.event_processor import EventProcessor
from spark_app.eventlog.bridge.metrics import Aggregate
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.parse.locations import LogPath
from tests.eventlogs.months import Roller, Stream

FILE_BYTES: Final = 400_000
LIMIT: Final = 1_200_000
BATCHES: Final = 12


@pytest.fixture
def roller(tmp_path: Path) -> Roller:
    """A log of some files."""
    stream, found = Stream(), Roller(tmp_path, file_bytes=FILE_BYTES)
    found.write(b"".join(line + b"\n" for line in stream.head))
    for number in range(BATCHES):
        found.write(stream.batch(number))
    found.finish()
    return found


def totals(log: Path) -> Aggregate:
    """What a bridge that starts now exports."""
    made = list[EventProcessor]()

    def listener(path: LogPath, app: Application) -> EventProcessor:
        made.append(EventProcessor(app, on_span=lambda _, __: None, thresholds=Thresholds()))
        return made[0]

    reader.read(log, make_listener=listener)
    return made[0].aggregator.aggregate()


def shrink(roller: Roller, *, limit: int = LIMIT, read: int | None = None) -> bool:
    """Compacts a log."""
    return compact(roller.log, limit=limit, read=read or roller.number, thresholds=Thresholds())


def names(log: Path) -> list[str]:
    """The files of a log."""
    return sorted(file.name for file in log.iterdir())


def test_half_of_the_limit_remains(roller: Roller) -> None:
    """Of old files one is left; below the limit nothing happens."""
    assert shrink(roller)
    sizes = {file.name: file.stat().st_size for file in roller.log.iterdir()}
    assert sum(sizes.values()) <= LIMIT
    assert sum(name.endswith(".compact") for name in sizes) == 1
    before = names(roller.log)
    assert not shrink(roller)
    assert names(roller.log) == before


def test_a_new_bridge_exports_the_same_totals(roller: Roller) -> None:
    """Prometheus would take lower ones for a reset, and count all once more; so it is after a second time."""
    before = totals(roller.log)
    for number in (1, 2):
        assert shrink(roller, limit=LIMIT // number)
        assert totals(roller.log) == before


def test_a_file_that_is_not_read_yet_stays(roller: Roller) -> None:
    """Its spans have not left."""
    assert not shrink(roller, read=1)
    assert shrink(roller, read=3)
    kept = [name for name in names(roller.log) if name.startswith("events_")]
    assert min(int(name.split("_")[1]) for name in kept) == 2


def test_what_is_open_is_kept(tmp_path: Path) -> None:
    """A job, its stage and its SQL executions that end in a later file have their beginnings."""
    stream, roller = Stream(), Roller(tmp_path, file_bytes=FILE_BYTES)
    roller.write(b"".join(line + b"\n" for line in stream.head))
    lines = stream.batch(0).splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if b"StageCompleted" in line)
    roller.write(b"".join(lines[:cut]))
    for number in range(100, 110):
        roller.write(stream.batch(number))
    roller.write(b"".join(lines[cut:]))
    roller.finish()
    assert shrink(roller)
    reading = reader.read(roller.log)
    query, job = reading.app.queries[2], reading.app.jobs[1]
    assert (query.ended is not None, job.completed is not None, job.query) == (True, True, 3)


def test_a_kill_loses_nothing(roller: Roller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the compact file has its name, the log is as it was; after it, old files that are left do no harm."""
    before = totals(roller.log)
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("no space left")))
        with pytest.raises(OSError, match="no space left"):
            shrink(roller)
    assert totals(roller.log) == before
    copies = {file: file.read_bytes() for file in roller.log.iterdir() if not file.name.endswith(".tmp")}
    assert shrink(roller)
    for file, content in copies.items():
        file.write_bytes(content)
    assert totals(roller.log) == before
    assert compaction.TEMPORARY not in names(roller.log)
