"""States, which are kept from day to day: whatever order days run in, a state ends as if each had run once, in order.

The day that follows all others is merged into the table of the state, and that is all. A day that is run again, or
late, begins from the state as of the day before: a version of the table. What it changes, and what each later day
changes on top of that, is computed anew and kept by day in a table beside (`_changes/<state>`); then the table is
replaced, in one commit. So a state that adds counts no day twice, and what a day does not have any more is gone.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Self

from msgspec.structs import replace
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_app.engine.context import DailyContext
from spark_app.engine.history import Validity, effects
from spark_app.errors import InputError
from spark_app.warehouse import delta_log, hadoop_files
from spark_app.warehouse.delta_log import Commit
from spark_app.warehouse.periods import CHANGES, NO_VERSION, Effect, Period
from spark_app.warehouse.tables import DELETED, PERIOD, Table, kept, same_key

Compute = Callable[[datetime.date, DataFrame], DataFrame]
"""What a day changes in a state, from the day and the state as of the day before."""
Reads = Callable[[datetime.date], Mapping[str, str]]
"""What a day of a state is made of."""
Confirm = Callable[[DataFrame, Commit | None], None]
"""Raises if the rows of a state as of the day cannot be right: those of a commit, or those that one will publish."""


@dataclass(frozen=True)
class State:
    """A table that is kept from day to day.

    Attributes:
        name: The name of the table.
        columns: Its columns.
        key: The columns that identify a row.
        validity: Of a history, the columns with the time in which a row is true.
        keeps_deleted: Whether the changes that delete rows are kept.
    """

    name: str
    columns: Sequence[str]
    key: Sequence[str]
    validity: Validity | None = None
    keeps_deleted: bool = False

    @classmethod
    def of(cls, table: Table, *, keeps_deleted: bool = False) -> Self:
        """The state that a table holds."""
        validity = Validity(*table.validity) if table.validity else None
        return cls(table.name, table.schema.names, table.key, validity, keeps_deleted)

    @property
    def is_same(self) -> str:
        """The SQL condition that a row of `old` and one of `new` have the same key; nulls are equal."""
        return same_key(self.key)

    @property
    def changes(self) -> str:
        """The table of what each day has changed."""
        return f"{CHANGES}/{self.name}"


def as_of(context: DailyContext, state: State, day: datetime.date) -> DataFrame:
    """The state as of a day: with what that day and those before it have changed.

    Raises:
        InputError: The version of the table that has it was vacuumed.
    """
    now = delta_log.last_version(context.spark, context.warehouse.path(state.name))
    days = context.warehouse.periods.days(state.name)
    last = max((each for each in days if each <= day and days[each].is_done), default=None)
    if not days:  # it was made before its days were kept
        return context.table(state.name)
    if last == max(days) and all(period.is_done for period in days.values()):
        return _version(context, state, now)
    period = days[last] if last else Period()
    if not _is_kept(context, state, period.base):
        raise InputError(
            f"{context.title}: {state.name} as of {last} was in its version {period.base}, which was vacuumed: run "
            f"{last} of the pipeline that writes {state.name}, which computes it again, then this"
        )
    return _content(context, state, period, last)


def _is_kept(context: DailyContext, state: State, version: int) -> bool:
    """Whether all files of a version are there: a vacuum deletes those that the newest version does not have."""
    if version in (NO_VERSION, delta_log.last_version(context.spark, context.warehouse.path(state.name))):
        return True
    try:
        files = {*context.table(state.name, version=version).inputFiles()}
    except PySparkException:  # its commit is gone, too
        return False
    gone = files - {*context.table(state.name).inputFiles()}
    return all(hadoop_files.exists(context.spark, file) for file in gone)


def _content(context: DailyContext, state: State, period: Period, last: datetime.date | None) -> DataFrame:
    """The rows that a state has as of a day, by what is known of that."""
    base = _version(context, state, period.base)
    if not period.first or last is None:
        return base
    changed = _changes(context, state).where(F.col(PERIOD).between(F.lit(period.first), F.lit(last)))
    if period.first != str(last):
        newest = Window.partitionBy(*state.key).orderBy(F.col(PERIOD).desc())
        changed = changed.withColumn("_rank", F.row_number().over(newest)).where("_rank = 1")
    old = base.alias("old").join(changed.select(*state.key).alias("new"), F.expr(state.is_same), "left_anti")
    return old.unionByName(kept(changed.select(*state.columns, DELETED)))


def deleted_before(context: DailyContext, state: State, day: datetime.date) -> DataFrame:
    """The changes of the days before a day that have deleted rows of a state."""
    return _changes(context, state).where(F.col(DELETED) & (F.col(PERIOD) < F.lit(day)))


def _changes(context: DailyContext, state: State) -> DataFrame:
    """What each day has changed, as far as it is kept beside the table."""
    changes = context.table(state.changes)
    if DELETED in changes.columns:
        return changes
    return changes.withColumn(DELETED, F.lit(False))


def _version(context: DailyContext, state: State, version: int) -> DataFrame:
    if version == NO_VERSION:
        return context.spark.createDataFrame([], context.warehouse.tables[state.name].schema)
    rows = context.table(state.name, version=version)
    missing = [field for field in context.warehouse.tables[state.name].schema if field.name not in rows.columns]
    for field in missing:  # a column that was declared later
        rows = rows.withColumn(field.name, F.lit(None).cast(field.dataType))
    return rows.select(*state.columns)


def apply(context: DailyContext, state: State, compute: Compute, reads: Reads, confirm: Confirm) -> Commit:
    """Applies the day of a run to a state.

    Args:
        context: The run.
        state: The state.
        compute: What a day changes.
        reads: What a day is made of.
        confirm: Checks the state as of the day.

    Raises:
        InputError: A later day has to be applied again, and its rows have been rejected since.
    """
    with context.warehouse.lock(f"state-{state.name}"):
        days, day = context.warehouse.periods.days(state.name), context.date
        if not days and context.warehouse.exists(state.name):
            context.note(
                f"{state.name} was made before its days were kept apart: what days have added to it until now stays; "
                "to have them kept apart, too, delete the table and run all days again"
            )
        is_next = all(each < day and period.is_done for each, period in days.items())
        if is_next:
            commit = _follow(context, state, compute, reads, is_first=not days)
            confirm(_version(context, state, commit.version), commit)
            return commit
        return _Rewind(context, state, compute, reads, confirm, days).run()


def _follow(context: DailyContext, state: State, compute: Compute, reads: Reads, *, is_first: bool) -> Commit:
    """Merges a day that follows all others."""
    day, periods, content = context.date, context.warehouse.periods, context.content
    before = delta_log.last_version(context.spark, context.warehouse.path(state.name))
    made_of = reads(day)
    periods.put(state.name, day, Period(reads=made_of, is_done=False))
    if state.keeps_deleted:
        _keep(context, state, day, compute(day, context.table(state.name)).where(DELETED))
    commit = context.merge(partial(compute, day), state.name, condition=state.is_same)
    if state.validity:
        found = [Effect("", "", content)] if is_first else _effects(context, state, before, commit.version)
        periods.add_effects(state.name, found)
    periods.put(state.name, day, Period(content, made_of, base=commit.version))
    return commit


def _keep(context: DailyContext, state: State, day: datetime.date, changes: DataFrame) -> None:
    """Keeps changes of a day beside the table of a state."""
    context.replace(changes.withColumn(PERIOD, F.lit(day)), state.changes, where=f"{PERIOD} = '{day}'")


def _effects(context: DailyContext, state: State, before: int, after: int) -> list[Effect]:
    assert state.validity is not None
    old, new = _version(context, state, before), _version(context, state, after)
    with context.step(f"compare {state.name}", kind="transform"):
        return effects(old, new, state.key, state.validity, content=context.content)


class _Rewind:
    """A day that others follow, or that is run again."""

    def __init__(
        self,
        context: DailyContext,
        state: State,
        compute: Compute,
        reads: Reads,
        confirm: Confirm,
        days: Mapping[datetime.date, Period],
    ) -> None:
        self._context, self._state, self._compute, self._reads = context, state, compute, reads
        self._confirm = confirm
        self._days, self._periods, self._day = dict(days), context.warehouse.periods, context.date
        self._later = [each for each in days if each > self._day]
        self._is_deferred = any(each in context.upcoming for each in self._later)
        self._was_open = any(not period.is_done for period in days.values())
        self._is_kept = cache(partial(_is_kept, context, state))

    def run(self) -> Commit:
        """Applies the day and those that need it again, and replaces the table, unless a day that follows does that."""
        open_before = [each for each, period in self._days.items() if each < self._day and not period.is_done]
        again = [*open_before, self._day, *([] if self._is_deferred else self._later)]
        base, first, again = self._start(again)
        known = self._days.get(self._day, Period(is_done=False))
        before = self._digest(known) if known.is_done and again[0] == self._day else None
        for each in sorted({*again, *self._later}):
            self._periods.put(self._state.name, each, self._open(each))
        done = dict[datetime.date, Period]()
        for each in again:
            done[each] = self._days[each] = Period(self._context.content, self._reads(each), base=base, first=first)
            self._write(each, base, first)
            if each == self._day:
                self._confirm(self._rows(done[each], each), None)
                if before is not None and before == self._digest(done[each]):
                    return self._unchanged(known, done[each])
        commit = self._nothing() if self._is_deferred else self._publish(max(again), done[max(again)])
        for each, period in done.items():
            self._periods.put(self._state.name, each, period)
        return commit

    def _unchanged(self, known: Period, now: Period) -> Commit:
        """Notes that the state as of the day has the rows that it had, and so as of all days that follow."""
        for each in self._later:
            self._periods.put(self._state.name, each, self._days[each])
        self._periods.put(self._state.name, self._day, replace(known, reads=now.reads))
        return self._nothing()

    def _start(self, again: list[datetime.date]) -> tuple[int, str, list[datetime.date]]:
        """The version to begin with, the first day on top of it, and the days to apply: all, if it is gone."""
        before = self._day_before(again[0])
        if before is None:
            return NO_VERSION, str(again[0]), again
        period = self._days[before]
        if self._is_kept(period.base):
            return period.base, period.first or str(again[0]), again
        self._context.note(
            f"{self._state.name} as of {before} was vacuumed: it is computed again from its first day on"
        )
        every = sorted({*self._days, self._day})
        self._later, self._is_deferred = [], False
        return NO_VERSION, str(every[0]), every

    def _day_before(self, day: datetime.date) -> datetime.date | None:
        return max((each for each in self._days if each < day), default=None)

    def _rows(self, period: Period, day: datetime.date) -> DataFrame:
        return _content(self._context, self._state, period, day)

    def _write(self, day: datetime.date, base: int, first: str) -> None:
        """Keeps what a day changes in the state as of the day before, beside the table."""
        state, context, before = self._state, self._context, self._day_before(day)
        is_kept_beside = before is not None and str(before) >= first
        old = _content(context, state, Period(base=base, first=first if is_kept_beside else ""), before)
        _keep(context, state, day, self._compute(day, old))

    def _digest(self, period: Period) -> tuple[object, ...] | None:
        """What the state as of the day has in common only with the same rows; None if it was vacuumed."""
        if not self._is_kept(period.base):
            return None
        with self._context.step(f"compare {self._state.name}", kind="transform"):
            hashed = F.xxhash64(*self._state.columns).cast("decimal(38, 0)")
            return tuple(self._rows(period, self._day).agg(F.count(F.lit(1)), F.sum(hashed)).collect()[0])

    def _open(self, day: datetime.date) -> Period:
        return replace(self._days.get(day, Period()), is_done=False)

    def _publish(self, last: datetime.date, period: Period) -> Commit:
        state, context = self._state, self._context
        before = delta_log.last_version(context.spark, context.warehouse.path(state.name))
        commit = context.replace_all(_content(context, state, period, last), state.name)
        if state.validity:
            found = None if self._was_open else _effects(context, state, before, commit.version)
            self._periods.add_effects(state.name, [Effect("", "", context.content)] if found is None else found)
        return commit

    def _nothing(self) -> Commit:
        path = self._context.warehouse.path(self._state.name)
        return delta_log.empty_commit(delta_log.last_version(self._context.spark, path))


def require_accepted(context: DailyContext, table: str, day: datetime.date) -> None:
    """Checks that a day of the table of a source may be read again.

    Raises:
        InputError: The last run of the day rejected its rows, or was killed.
    """
    period = context.warehouse.periods.period(table, day)
    if not period.is_done:
        raise InputError(
            f"{context.title}: a state has to be computed again from {day} on, but the last run of that day "
            f"{'rejected the rows of' if period.is_rejected else 'was ended while it wrote'} {table}: run {day} first"
        )
