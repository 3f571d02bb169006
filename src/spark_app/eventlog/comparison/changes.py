"""What differs between two runs, whether or not it explains their durations: settings, plans, rows, shuffle, CPU."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from msgspec import Struct

from spark_app.eventlog.comparison.attribution import NO_GROUP
from spark_app.eventlog.comparison.causes import Setting, host_text
from spark_app.eventlog.comparison.plan_changes import plan_changes
from spark_app.eventlog.comparison.profile import RunProfile, StageGroup, merged
from spark_app.formatting import count, duration, quantity, size
from spark_app.redaction import excerpt

MAX_LISTED: Final = 10
"""Settings, and places with changed plans, that are listed; the rest is counted."""


class Change(Struct, frozen=True):
    """What differs, whether or not it explains the time."""

    what: str
    text: str


class _Total(NamedTuple):
    """A total over all tasks; one that is not always listed is listed where a run has any."""

    what: str
    value: Callable[[StageGroup], float | None]
    text: Callable[[float | None], str]
    is_always_listed: bool = False


def _rows_read(total: StageGroup) -> int | None:
    return _rows(total.volume.input_records, total.volume.input_bytes)


def _rows_written(total: StageGroup) -> int | None:
    return _rows(total.volume.output_records, total.volume.output_bytes)


def _rows(rows: int, octets: int) -> int | None:
    """Rows; None if the source counts bytes only."""
    return None if octets and not rows else rows


_TOTALS: Final = (
    _Total("rows read", _rows_read, count, is_always_listed=True),
    _Total("rows written", _rows_written, count),
    _Total("shuffled", lambda total: total.volume.shuffle_write_bytes, size, is_always_listed=True),
    _Total("spilled", lambda total: total.volume.disk_spilled, size),
    _Total("tasks", lambda total: total.tasks, count, is_always_listed=True),
    _Total("failed tasks", lambda total: total.failed, count),
    _Total("CPU time", lambda total: total.spent.cpu, duration, is_always_listed=True),
    _Total("time in Python", lambda total: total.python_ms if total.has_python else 0, duration),
    _Total("garbage collection", lambda total: total.spent.gc, duration),
)


def changes(before: RunProfile, now: RunProfile, settings: Sequence[Setting]) -> list[Change]:
    """The table of what changed: each changed setting and plan, then the totals of all tasks.

    Args:
        before: The earlier run.
        now: The later run.
        settings: The changed settings.
    """
    changed, host = [str(each) for each in settings], host_text(before, now)
    plans = [f"{excerpt(place)}: {change.text}" for place, change in plan_changes(before, now).items()]
    return [
        *_listed("setting", changed),
        *(_listed("plan", plans) if before.plans or now.plans else []),
        *_totals(before, now),
        *([Change("driver host", host)] if host else []),
    ]


def _listed(what: str, texts: list[str]) -> Iterator[Change]:
    """A line for each text, or one for no text."""
    for text in islice(texts, MAX_LISTED):
        yield Change(what, text)
    if len(texts) > MAX_LISTED:
        yield Change(what, f"{quantity(len(texts) - MAX_LISTED, f'other {what}')} changed")
    if not texts:
        yield Change(f"{what}s", "the same")


def _totals(before: RunProfile, now: RunProfile) -> Iterator[Change]:
    current, baseline = (merged(profile.groups) if profile.groups else NO_GROUP for profile in (now, before))
    for total in _TOTALS:
        values = total.value(current), total.value(baseline)
        if total.is_always_listed or any(values):
            shown, shown_before = map(total.text, values)
            same = shown == shown_before
            yield Change(total.what, f"{shown}, the same" if same else f"{shown}, before {shown_before}")
