"""Copies what has ended to the store of runs: run records, run profiles and reports.

A copy lies in the folder `.unsent` of the reports until the store has taken it, so that a store that is away delays it
and nothing else: the next command that has something to copy sends what is left.
"""

import secrets
import time
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from spark_app.errors import message_of
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.formatting import quantity
from spark_app.local_files import ensure_dir, exclusive_lock, write_atomic
from spark_app.report import run_store
from spark_app.report.run_store import RECORDS, REPORTS, day_of
from spark_app.runs import liveness
from spark_app.runs.run_record import RECORD, RunRecord
from spark_app.settings import Settings

FOLDER: Final = ".unsent"
LOCK: Final = ".lock"
DAY_SECONDS: Final = 86_400


def keep_profile(settings: Settings, profile: RunProfile) -> None:
    """Keeps a run profile for the store, where there is one.

    Raises:
        OSError: It cannot be written.
    """
    content = msgspec.json.encode(profile) + b"\n"
    for key in run_store.profile_keys(profile) if settings.run_store else ():
        write_atomic(_folder(settings) / key, content)


def keep_report(settings: Settings, report: Path, started: float | None) -> None:
    """Keeps a report for the store; the time is the start of what it is about, in milliseconds since the epoch.

    Raises:
        OSError: It cannot be written.
    """
    if settings.run_store:
        write_atomic(_folder(settings) / REPORTS / day_of(started) / report.name, report.read_bytes())


def keep_runs(settings: Settings, records: Iterable[RunRecord], *, note: Callable[[str], None]) -> None:
    """Keeps the records and the other files of runs that have ended; what cannot be written is noted."""
    for record in records if settings.run_store else ():
        try:
            _keep_run(_folder(settings), record)
        except OSError as error:
            note(f"{record.run_id} is not copied to the run store: {error}")


def send(settings: Settings, *, note: Callable[[str], None]) -> None:
    """Copies to the store what is kept for it, the oldest first; notes in one line what hinders that."""
    folder = _folder(settings)
    if not settings.run_store or not _waiting(folder):
        return
    try:
        with exclusive_lock(folder / LOCK):
            _send(settings, folder)
    except Exception as error:  # noqa: BLE001 - the store is no reason for a command to fail
        left, why = quantity(len(_waiting(folder)), "file"), message_of(error)
        note(f"the run store has not got everything: {why}; the next command sends the {left} in {folder}")
        _forget_expired(settings, folder)


def _send(settings: Settings, folder: Path) -> None:
    waiting = _waiting(folder)
    store = run_store.configured_store(settings) if waiting else None
    if store is None:
        return
    for file in waiting:
        sent = file.stat().st_mtime_ns
        store.put(str(file.relative_to(folder)), file)
        with suppress(FileNotFoundError):
            if file.stat().st_mtime_ns == sent:  # else another process has something newer
                file.unlink()


def _keep_run(folder: Path, record: RunRecord) -> None:
    """A record means that the rest is there, so it comes last."""
    file = folder / run_store.run_key(record.run_id)
    part = ensure_dir(file.parent) / f".{secrets.token_hex(8)}.part"
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as packed:
            for each in sorted(record.folder.rglob("*")):
                if each.is_file() and each.name != liveness.LIVENESS_LOCK:
                    packed.write(each, each.relative_to(record.folder))
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    content = (record.folder / RECORD).read_bytes()
    write_atomic(folder / RECORDS / day_of(record.started_at.timestamp() * 1000) / f"{record.run_id}.json", content)


def _waiting(folder: Path) -> list[Path]:
    """What is to be sent, the oldest first."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")]
    return sorted(files, key=_written)


def _forget_expired(settings: Settings, folder: Path) -> None:
    """Deletes what is older than what the retention keeps: a store that never answers fills no disk."""
    days = settings.retention.days
    if days is None:
        return
    for file in _waiting(folder):
        if time.time() - _written(file) > days * DAY_SECONDS:
            file.unlink(missing_ok=True)


def _written(file: Path) -> float:
    with suppress(FileNotFoundError):
        return file.stat().st_mtime
    return 0.0


def _folder(settings: Settings) -> Path:
    return settings.reports_path / FOLDER
