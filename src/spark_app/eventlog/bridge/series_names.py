"""Bounds the series of a day: the first names have series of their own, and the rest is counted as `other`.

A stage group has 25 series: 20 of the histogram of durations, and 5 counters. An application has 14 counters and
gauges, one for each rule that found something, and the group `other`. Without bounds, 200 applications of 20 groups and
5 findings each would have 200 * (20 * 25 + 14 + 5) = 103,800 series. docs/decisions/0014 has the numbers with bounds.
"""

from typing import Final

import msgspec

from spark_app.eventlog.bridge.metrics import OTHER, Aggregate, Numbers

DAY_SECONDS: Final = 86_400.0
MAX_APPLICATIONS: Final = 300
"""Names of applications within a day, since some programs have a date in their name."""
MAX_ALL_GROUPS: Final = 2_400
"""Stage groups of all applications within a day."""


class _Names(msgspec.Struct):
    """The names of one application: whether it, and which of its groups, have series of their own."""

    is_own: bool
    used: float
    groups: dict[str, bool] = {}


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
        result = Numbers(counts=dict(numbers.counts), levels=dict(numbers.levels))
        room = MAX_ALL_GROUPS - sum(sum(each.groups.values()) for each in self.applications.values())
        for name, group in numbers.groups.items():
            if name not in entry.groups and name != OTHER:
                entry.groups[name] = entry.is_own and room > 0
                room -= entry.groups[name]
            result.group(name if entry.groups.get(name) else OTHER).merge(group)
        return result
