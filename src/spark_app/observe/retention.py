"""Deletes event logs, reports, runs, tunings and logs of Spark beyond the configured age or size, unless in use."""

import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from spark_app.eventlog.parse.locations import state
from spark_app.eventlog.parse.log_files import logs_in
from spark_app.eventlog.parse.log_tailer import is_finished
from spark_app.eventlog.reader import begins_as_log
from spark_app.formatting import quantity, size
from spark_app.local_files import ensure_dir, exclusive_lock, open_files
from spark_app.report import index
from spark_app.runs import liveness
from spark_app.runs.run_record import RECORD
from spark_app.settings import Retention, Settings
from spark_app.stack_samples.samples import file_of
from spark_app.telemetry.delivery import DELIVERY
from spark_app.telemetry.run_files import STARTED

Kind = Literal["event log", "report", "run", "tuning", "Spark log"]
Use = Literal["used", "unfinished", "done"]
KINDS: Final[tuple[Kind, ...]] = ("event log", "report", "run", "tuning", "Spark log")
SPARK_LOGS: Final = ("spark-[0-9]*.jsonl", "driver-*.jsonl", "executor-*.jsonl", "java-crash-*.log")
"""What one application each leaves in the folder of logs; a daemon of Spark goes on with its file for months."""
TUNINGS: Final = "tuning"
"""Below the reports: a folder for each `spark-app tune`, with the event logs of its runs and what they printed."""
LOCK: Final = ".prune"
DELETED: Final = ".deleted"
"""The end of the hidden name of a folder that is being deleted: no reader finds a half of it."""
DAY_SECONDS: Final = 86_400
GIGABYTE: Final = 1_000_000_000
SETTLED_SECONDS: Final = 3600
"""What was written less than this ago stays, whatever its size."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Something that retention is about.

    Attributes:
        kind: What it is.
        path: Its file or folder.
        bytes: Its size on disk.
        modified: Its last write, in seconds since the epoch.
        use: `used`: a process writes or reads it, or a run is running; `unfinished`: its application or its delivery
            has not ended, as far as is known; `done`: otherwise.
        beside: What goes with it.
    """

    kind: Kind
    path: Path
    bytes: int
    modified: float
    use: Use
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Expired:
    """What is deleted, and why."""

    stored: Stored
    reason: str


def prune(settings: Settings, *, is_dry_run: bool, on_wait: Callable[[], None] | None = None) -> list[Expired]:
    """Deletes what has expired, and returns it; two processes take turns.

    Args:
        settings: Names the folders and the retention.
        is_dry_run: Whether nothing is deleted.
        on_wait: Called once if another process deletes now.

    Raises:
        MachineError: The folder of the reports cannot be created.
        OSError: A folder cannot be read, or something cannot be deleted.
    """
    if is_dry_run:
        return expired(everything(settings), settings.retention, now=time.time())
    with exclusive_lock(ensure_dir(settings.reports_path) / LOCK, on_wait=on_wait):
        found = expired(everything(settings), settings.retention, now=time.time())
        for each in found:
            delete(each.stored)
        _finish_deletions(settings)
        if any(each.stored.kind == "report" for each in found):
            index.write(settings.reports_path)
    return found


def prune_daily(settings: Settings, *, note: Callable[[str], None]) -> None:
    """The same at most once a day, at the end of a command; notes what was deleted, and raises nothing.

    The first time it only notes what it will delete a day later.
    """
    lock = settings.reports_path / LOCK
    try:
        if lock.exists() and time.time() - lock.stat().st_mtime < DAY_SECONDS:
            return
        is_first = not lock.exists()
        ensure_dir(lock.parent)
        lock.touch()
        found = prune(settings, is_dry_run=is_first)
    except Exception as error:  # noqa: BLE001 - what a command did matters more
        note(f"cannot delete old event logs, reports, runs and logs: {error}")
        return
    rule = f"as `retention` in {settings.config / 'app.yml'} says"
    if found and is_first:
        note(f"will delete {summary(found)} in a day, {rule}: `spark-app prune --dry-run` lists them")
    elif found:
        note(f"deleted {summary(found)}, {rule}")


def expired(stored: Iterable[Stored], retention: Retention, *, now: float) -> list[Expired]:
    """What is older than the retention allows, and the oldest of the rest that is above its size; the oldest first."""
    oldest_first = sorted(stored, key=lambda each: (each.modified, str(each.path)))
    limit = None if retention.gigabytes is None else retention.gigabytes * GIGABYTE
    total, found = sum(each.bytes for each in oldest_first), list[Expired]()
    for each in oldest_first:
        reason = _reason(each, retention, now=now, is_above=limit is not None and total > limit)
        if reason is not None:
            found.append(Expired(each, reason))
            total -= each.bytes
    return found


def _reason(stored: Stored, retention: Retention, *, now: float, is_above: bool) -> str | None:
    """Why something is deleted; None if it stays."""
    age = now - stored.modified
    if stored.use == "used":
        return None
    if retention.days is not None and age > retention.days * DAY_SECONDS:
        return f"older than {retention.days:g} days"
    if is_above and stored.use == "done" and age > SETTLED_SECONDS:
        return f"all above {retention.gigabytes:g} GB"
    return None


def everything(settings: Settings) -> list[Stored]:
    """All event logs, reports, runs, tunings and logs of Spark of a configuration."""
    return [
        *_event_logs(settings.events_path),
        *_reports(settings.reports_path),
        *_runs(settings.runs_path),
        *_tunings(settings.reports_path / TUNINGS),
        *_logs(settings.logs_path),
    ]


def summary(found: Iterable[Expired]) -> str:
    """How much of what was deleted: `3 event logs, 1 run (1.2 GiB)`."""
    kinds, total = [each.stored.kind for each in found], sum(each.stored.bytes for each in found)
    return f"{', '.join(quantity(kinds.count(kind), kind) for kind in KINDS if kind in kinds)} ({size(total)})"


def _event_logs(folder: Path) -> Iterator[Stored]:
    if not folder.is_dir():
        return
    opened = open_files(folder)
    for log in logs_in(folder).values():
        path = folder / log.path.name
        if not begins_as_log(path):
            continue
        is_open = any(file == path or path in file.parents for file in opened)
        use: Use = "used" if is_open else "done" if is_finished(log.path) else "unfinished"
        yield Stored("event log", path, log.size(), log.modified(), use, (file_of(path),))


def _reports(folder: Path) -> Iterator[Stored]:
    for file in folder.glob("*.html"):
        entry = folder / index.ENTRIES / f"{file.stem}.json"
        if entry.exists():  # all that this program wrote here have one
            yield Stored("report", file, *state(file), "done", (entry,))


def _runs(folder: Path) -> Iterator[Stored]:
    for run in folder.glob("[!.]*/"):
        if not any((run / name).exists() for name in (RECORD, STARTED)):
            continue
        use: Use = "unfinished" if (run / DELIVERY).exists() else "done"
        yield Stored("run", run, *_all_in(run), "used" if liveness.is_running(run) else use)


def _tunings(folder: Path) -> Iterator[Stored]:
    opened = open_files(folder)
    for tuning in folder.glob("[0-9]*/"):  # by their time; forecasts stand beside them, and stay
        yield Stored(
            "tuning", tuning, *_all_in(tuning), "used" if any(tuning in file.parents for file in opened) else "done"
        )


def _all_in(folder: Path) -> tuple[int, float]:
    """The size of all files of a folder, and their last write."""
    files = [state(file) for file in folder.rglob("*") if file.is_file()]
    return sum(each.size for each in files), max((each.modified for each in files), default=0.0)


def _logs(folder: Path) -> Iterator[Stored]:
    opened = open_files(folder)
    for file in (each for pattern in SPARK_LOGS for each in folder.glob(pattern)):
        yield Stored("Spark log", file, *state(file), "used" if file in opened else "done")


def delete(stored: Stored) -> None:
    """Deletes something; no error if it is gone by now."""
    for path in (stored.path, *stored.beside):
        with suppress(FileNotFoundError):  # another process has deleted it
            if path.is_dir():
                path.rename(hidden := path.with_name(f".{secrets.token_hex(8)}{DELETED}"))
                shutil.rmtree(hidden, ignore_errors=True)
            else:
                path.unlink()


def _finish_deletions(settings: Settings) -> None:
    """Deletes the folders that a killed process was deleting."""
    folders = (settings.events_path, settings.runs_path, settings.reports_path / TUNINGS)
    for folder in folders:
        for hidden in folder.glob(f".*{DELETED}"):
            shutil.rmtree(hidden, ignore_errors=True)
