"""Bounds the series of a day: the first names have series of their own, and the rest is counted as `other`.

A stage group has 25 series: 20 of the histogram of durations, and 5 counters. An application has 14 counters and
gauges, one for each rule that found something, and the group `other`. A streaming query has 48, and one more for each
of its topics and each further state that it was in. Without bounds, 200 applications of 20 groups and 5 findings each
would have 200 * (20 * 25 + 14 + 5) = 103,800 series. docs/decisions/0014 has the numbers with bounds.
"""

from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from spark_app.eventlog.bridge.metrics import OTHER, Aggregate, Numbers, QueryNumbers

DAY_SECONDS: Final = 86_400.0
MAX_APPLICATIONS: Final = 300
"""Names of applications within a day, since some programs have a date in their name."""
MAX_ALL_GROUPS: Final = 2_400
"""Stage groups of all applications within a day."""
MAX_ALL_QUERIES: Final = 200
"""Streaming queries of all applications within a day that do not measure themselves."""
MAX_ALL_TOPICS: Final = 1_000
"""Their topics, which are labels as well."""
_Kind = Literal["groups", "queries", "topics"]
_MAX_NAMES: Final[dict[_Kind, int]] = {"groups": MAX_ALL_GROUPS, "queries": MAX_ALL_QUERIES, "topics": MAX_ALL_TOPICS}


class _Names(msgspec.Struct):
    """The names of one application: whether it, and which of its groups, queries and their topics, have series."""

    is_own: bool
    used: float
    groups: dict[str, bool] = {}
    queries: dict[str, bool] = {}
    topics: dict[tuple[str, str], bool] = {}

    def has_series(self, kind: _Kind, key: Any, room: dict[_Kind, int]) -> bool:
        """Whether a name has series of its own, by its first use or since then."""
        known: dict[Any, bool] = getattr(self, kind)
        if key not in known:
            known[key] = self.is_own and room[kind] > 0
            room[kind] -= known[key]
        return known[key]


class SeriesNames(msgspec.Struct):
    """Which names have series of their own; a name keeps what it has until it was not used for a day.

    If a name moved while its application runs, the series that it leaves would shrink.
    """

    applications: dict[str, _Names] = {}

    def bounded(self, numbers: Aggregate, *, now: float) -> Aggregate:
        """The numbers under the names that have series; `numbers` is not changed.

        Args:
            numbers: The totals of one log.
            now: Seconds since the epoch.
        """
        self.applications = {name: each for name, each in self.applications.items() if now - each.used < DAY_SECONDS}
        result = Aggregate()
        for name, each in numbers.applications.items():
            entry = self.applications.setdefault(name, _Names(self._owners() < MAX_APPLICATIONS, now))
            entry.used = now
            result.application(name if entry.is_own else OTHER).merge(self._grouped(entry, each))
        return result

    def _owners(self) -> int:
        return sum(each.is_own for each in self.applications.values())

    def _grouped(self, entry: _Names, numbers: Numbers) -> Numbers:
        result, room = Numbers(counts=dict(numbers.counts), levels=dict(numbers.levels)), self._room()
        for name, group in numbers.groups.items():
            has_series = name != OTHER and entry.has_series("groups", name, room)
            result.group(name if has_series else OTHER).merge(group)
        for name, query in numbers.queries.items():
            has_series = name != OTHER and entry.has_series("queries", name, room)
            result.query(name if has_series else OTHER).merge(_with_bounded_topics(entry, name, query, room))
        return result

    def _room(self) -> dict[_Kind, int]:
        """How many more names of each kind may have series."""
        known = [each for each in self.applications.values() if each.is_own]
        return {
            kind: most - sum(sum(getattr(each, kind).values()) for each in known) for kind, most in _MAX_NAMES.items()
        }


def _with_bounded_topics(entry: _Names, name: str, query: QueryNumbers, room: dict[_Kind, int]) -> QueryNumbers:
    status = query.status
    if status is None:
        return query
    levels = {
        key: level
        for key, level in status.levels.items()
        if all(entry.has_series("topics", (name, topic), room) for topic in key[1:])
    }
    return QueryNumbers(query.durations, query.counts, replace(status, levels=levels))
