"""Stores run profiles: a folder for each application name, a JSON file for each run."""

import hashlib
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from spark_app.errors import InputError
from spark_app.eventlog.comparison import profiling
from spark_app.eventlog.comparison.compare import Comparison, compare
from spark_app.eventlog.comparison.profile import VERSION, RunProfile
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.outcome import GOOD
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.parse.log_files import newest_first
from spark_app.eventlog.parse.log_tailer import IN_PROGRESS
from spark_app.eventlog.reader import Reading, head, read
from spark_app.local_files import write_atomic

MAX_PROFILES: Final = 100
"""How many run profiles of one name are kept however old they are."""
DAY_MS: Final = 86_400_000
PLACES: Final = ("cluster", "namespace")
"""The labels that say where an application ran."""
COMPARED: Final = 5
"""How many successful earlier runs are the baseline of a run. Project: the working days of a week."""


def compare_with_baseline(folder: Path, now: RunProfile) -> Comparison | None:
    """Compares a run with the last successful runs of its application; None if none is stored."""
    earlier = last_good(folder, now)
    return compare(earlier, now) if earlier else None


def save(folder: Path, summary: RunProfile, *, days: float | None = 0) -> Path:
    """Writes a run profile atomically, and returns its file.

    Args:
        folder: The folder of all run profiles.
        summary: The profile.
        days: Profiles of the same name that started longer before it are deleted, but for the newest; None keeps all.

    Raises:
        OSError: The file cannot be written.
    """
    file = _file(folder, summary.application, summary.started, summary.id)
    write_atomic(file, msgspec.json.encode(summary) + b"\n")
    if days is not None:
        oldest = f"{max(0, round(summary.started - days * DAY_MS)):013}"
        for old in sorted(file.parent.glob("*.json"))[:-MAX_PROFILES]:
            if days == 0 or old.name < oldest:
                old.unlink(missing_ok=True)
    return file


def load(file: Path) -> RunProfile:
    """The run profile in a file.

    Raises:
        InputError: The file has no run profile, or one of another version.
    """
    try:
        return decoded(file.read_bytes(), file)
    except OSError as error:
        raise InputError(f"{file} is not a run profile: {error}") from error


def decoded(content: bytes, shown: Path | str) -> RunProfile:
    """The run profile that a file contains.

    Raises:
        InputError: It contains none, or one of another version.
    """
    try:
        profile = msgspec.json.decode(content, type=RunProfile)
    except ValueError as error:
        raise InputError(f"{shown} is not a run profile: {error}") from error
    if profile.version != VERSION:
        raise InputError(f"{shown} is a run profile of version {profile.version}; this program reads version {VERSION}")
    return profile


def stored(folder: Path, app: Application, log: LogPath) -> RunProfile | None:
    """The stored profile of an application; None without a readable one."""
    try:
        return load(_file(folder, *profiling.identity(app, log)))
    except InputError:
        return None


def recall(folder: Path, reading: Reading) -> None:
    """Adds to an application what its stored profile has and its log has not, unless it was measured just now."""
    app = reading.app
    is_observed = app.process_exit_code is not None or app.host_load is not None
    known = None if is_observed else stored(folder, app, reading.log)
    if known is not None:
        app.process_exit_code, app.host_load = known.exit_code, known.host_load
        if known.outcome == "killed" and app.ended is None:
            app.is_alive = False


def last_good(folder: Path, now: RunProfile) -> list[RunProfile]:
    """The last `COMPARED` successful runs of the same work that started earlier, newest first."""
    earlier = (
        profile for profile in _newest_first(folder / folder_name(now.application)) if is_earlier_and_good(profile, now)
    )
    return list(islice(earlier, COMPARED))


def newest_good(folder: Path, application: str) -> list[RunProfile]:
    """The last `COMPARED` successful runs of a name, newest first."""
    stored_ones = _newest_first(folder / folder_name(application))
    return list(islice((profile for profile in stored_ones if profile.outcome in GOOD), COMPARED))


def earlier(folder: Path, now: RunProfile, log: LogPath | None) -> list[RunProfile]:
    """The last successful runs of the same application: stored profiles, else event logs beside its own.

    Raises:
        InputError: There is no such run.
    """
    profiles = last_good(folder, now)
    if not profiles and log is not None:
        profiles = good_beside(folder, log, now)
    if not profiles:
        raise InputError(f"no earlier successful run of {now.application!r}: name the run to compare with")
    return profiles


def is_earlier_and_good(summary: RunProfile, now: RunProfile) -> bool:
    """Whether a run may be a baseline of `now`: it did the same work earlier, and succeeded.

    Applications of one name in two clusters or namespaces are two, where both say where they ran.
    """
    is_same = (summary.application, summary.workload) == (now.application, now.workload)
    is_elsewhere = any(
        summary.labels[place] != now.labels[place] for place in PLACES if {place} <= summary.labels.keys() & now.labels
    )
    is_good = summary.outcome in GOOD and summary.id != now.id
    return is_same and not is_elsewhere and is_good and summary.started < now.started


def good_beside(folder: Path, log: LogPath, now: RunProfile) -> list[RunProfile]:
    """The same from the event logs beside a log; logs of other applications are read up to the name only."""
    own = log.name.removesuffix(IN_PROGRESS)
    logs = (entry.path for entry in newest_first(log.parent) if entry.key != own)
    same = (path for path in logs if (app := head(path)) is not None and app.name == now.application)
    profiles = (_recalled(folder, path) for path in same)
    return list(islice((profile for profile in profiles if is_earlier_and_good(profile, now)), COMPARED))


def _recalled(folder: Path, log: LogPath) -> RunProfile:
    reading = read(log)
    recall(folder, reading)
    return profiling.run_profile(reading)


def _newest_first(folder: Path) -> Iterator[RunProfile]:
    """The run profiles of a folder, without damaged ones and those of other versions."""
    for file in sorted(folder.glob("*.json"), reverse=True):
        try:
            yield load(file)
        except InputError:
            continue


def file_name(summary: RunProfile) -> str:
    """The file of a run profile, from the folder of all of them."""
    return str(_file(Path(), summary.application, summary.started, summary.id))


def folder_name(application: str) -> str:
    """The folder of an application: its name, escaped and truncated, and the hash of its name."""
    return f"{_plain(application)[:60]}-{hashlib.sha256(application.encode()).hexdigest()[:8]}"


def _file(folder: Path, application: str, started: int, id: str) -> Path:  # noqa: A002 - it is what Spark calls it
    return folder / folder_name(application) / f"{started:013}-{_plain(id)}.json"


def _plain(text: str) -> str:
    """A name for files; another rule than that of reports, and always the same: it finds what earlier runs stored."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "unnamed"
