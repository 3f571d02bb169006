"""What the index of runs takes from a run profile and from a run record; the rest of the files is not decoded."""

import datetime
import json
from typing import Final, TypeVar

import msgspec

from spark_app.eventlog.comparison.profile import VERSION
from spark_app.eventlog.labels import USER

Row = tuple[str | float | None, ...]
RUNNING: Final = "running"
MAX_TEXT: Final = 1000
"""Characters of a run that the search looks at."""


class _Profile(msgspec.Struct):
    version: int
    application: str
    id: str
    outcome: str
    started: float
    duration_ms: float
    core_ms: float
    workload: str = ""
    gib_ms: float | None = None
    labels: dict[str, str] = {}
    users: dict[str, float] = {}
    findings: list[str] = []

    @property
    def parts(self) -> dict[str, float]:
        """What each user had of its core time: of a server of Spark Connect each client, and under no name the rest."""
        return self.users if len(self.users) > 1 else {self.labels.get(USER, ""): self.core_ms}


class _Record(msgspec.Struct):
    run_id: str
    pipeline: str
    outcome: str
    started_at: datetime.datetime
    seconds: float
    slice: str = ""
    application_id: str | None = None


Stored = TypeVar("Stored", _Profile, _Record)


def profile_row(content: bytes) -> Row | None:
    """The columns of a run profile, after its path; None where the file is no run profile."""
    profile = _decoded(content, _Profile)
    if profile is None:
        return None
    return (
        profile.id,
        profile.application,
        profile.workload,
        profile.outcome,
        profile.started,
        profile.duration_ms,
        profile.core_ms,
        profile.gib_ms,
        profile.version == VERSION,
        json.dumps(profile.labels),
        json.dumps(profile.parts),
        json.dumps(profile.findings),
        _text(
            profile.application,
            profile.workload,
            profile.id,
            *profile.labels.values(),
            *profile.users,
            *profile.findings,
        ),
    )


def record_row(content: bytes) -> Row | None:
    """The columns of a run record, after its path; without an application, the run is its own."""
    record = _decoded(content, _Record)
    if record is None:
        return None
    return (
        record.application_id or record.run_id,
        record.run_id,
        record.pipeline,
        record.slice,
        record.outcome,
        record.started_at.timestamp() * 1000,
        None if record.outcome == RUNNING else record.seconds * 1000 or None,
        _text(record.pipeline, record.slice, record.run_id),
    )


def _text(*parts: str) -> str:
    return searched(" ".join(parts))[:MAX_TEXT]


def searched(text: str) -> str:
    """A text as the search compares it."""
    return text.casefold()


def _decoded(content: bytes, kind: type[Stored]) -> Stored | None:
    try:
        return msgspec.json.decode(content, type=kind)
    except ValueError:
        return None
