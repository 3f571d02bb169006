"""What a random history of days leaves, by a model in plain Python, and which days had to run for it.

The model knows the functions of `any_order`, and of the engine nothing: what a run of a day read, and what that is now.
"""

import copy
import datetime
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from spark_app.errors import InputError
from spark_app.warehouse.periods import Periods
from tests.integration.any_order import PIPELINES, TABLES, Project, changes, readings

Row = tuple[Any, ...]
Day = datetime.date
Run = tuple[str, Day]
"""A pipeline and a day."""
METERS, READINGS, BILLS, PARTS = PIPELINES
EVENTS: Final = ("late", "corrected", "withdrawn", "meters", "no meters", "again", "killed", "stale")
MOST: Final = 1.2
"""How many days of pipelines may run for one of which the rows that it reads are other ones."""
LAST: Final = datetime.date(9999, 12, 31)
FIRST_FILE: Final = "a"
FURTHER: Final = "b"
"""The name of a second raw file of a day, which comes late and may be withdrawn."""


@dataclass
class Model:
    """What the pipelines read when a day of them ran last, and what they made of it.

    Attributes:
        raw: By source, day and file: which delivery it was, since a new file is another one even if its rows are not,
            and the rows.
        read: By the days that have run, what they read; an object that is like no other where a run was killed.
        deliveries: How many files were delivered.
    """

    raw: dict[tuple[str, Day], dict[str, tuple[int, list[dict[str, Any]]]]] = field(default_factory=dict)
    read: dict[Run, object] = field(default_factory=dict)
    deliveries: int = 0

    def ran(self, run: Run, *, whole: bool) -> None:
        """Notes what a run read; of one that ended before its time, nothing is known."""
        self.read[run] = self.inputs(run) if whole else object()

    def inputs(self, run: Run) -> object:
        """What a run of a day would read now."""
        name, day = run
        if name in (METERS, READINGS):
            files = self.raw[name.removeprefix("etl."), day]
            return {file: number for file, (number, _) in files.items()}, [
                row for _, rows in files.values() for row in rows
            ]
        if name == BILLS:
            return self.usage(day), {meter: customer for meter, customer, *_ in self.true_on(day)}
        return self.bills(day), self.month(day)

    def stale(self) -> list[Run]:
        """The days that have to run: what they read is other now, or what those will read that have to run before."""
        later = Model(self.raw, dict(self.read))
        found = list[Run]()
        for name in PIPELINES:
            for day in sorted(day for of, day in self.read if of == name):
                if later.read[name, day] != later.inputs((name, day)):
                    found.append((name, day))
                    later.ran((name, day), whole=True)
        return found

    def content(self) -> dict[str, list[Row]]:
        """The rows of all tables, in an order."""
        days = sorted({day for _, day in self.read})
        found: dict[str, list[Row]] = {
            "usage": [(day, *row) for day in days for row in self.usage(day).items()],
            "totals": self.totals(),
            "meters": [(meter, customer, since, since, until) for meter, customer, since, until in self.meters()],
            "bills": [(day, *row) for day in days for row in self.bills(day).items()],
            "month": [*self.month(LAST).items()],
            "parts": [
                (day, customer, part, until_now[customer])
                for day in days
                for bills, until_now in [self._read(PARTS, day)]
                for customer, part in bills.items()
            ],
        }
        return {name: sorted(found[name], key=repr) for name in TABLES}

    def usage(self, day: Day) -> dict[str, Decimal]:
        """What each meter measured in a day, as it was made last."""
        [_, rows] = self._read(READINGS, day)
        return _summed((row["meter_id"], Decimal(row["kwh"])) for row in rows)

    def totals(self) -> list[Row]:
        """What each meter measured, and in how many days."""
        days = [self.usage(day) for of, day in self.read if of == READINGS]
        sums = _summed(row for usage in days for row in usage.items())
        return [(meter, kwh, sum(meter in usage for usage in days)) for meter, kwh in sums.items()]

    def meters(self) -> list[tuple[str, str, Day, Day | None]]:
        """The customers of the meters, from when until when; what a later day says of a time is true."""
        known = dict[tuple[str, Day], str]()
        for day in sorted(day for of, day in self.read if of == METERS):
            [_, rows] = self._read(METERS, day)
            for row in sorted(rows, key=lambda row: row["changed_at"]):
                known[row["meter_id"], datetime.date.fromisoformat(row["since"])] = row["customer"]
        since = {meter: sorted(day for of, day in known if of == meter) for meter, _ in known}
        until = {(meter, day): end for meter in since for day, end in zip_longest(since[meter], since[meter][1:])}
        return [(meter, known[meter, day], day, until[meter, day]) for meter, day in sorted(known)]

    def true_on(self, day: Day) -> list[tuple[str, str, Day, Day | None]]:
        """What is true of the meters on a day."""
        return [row for row in self.meters() if row[2] <= day and (row[3] is None or day < row[3])]

    def bills(self, day: Day) -> dict[str, Decimal]:
        """What each customer used in a day, as it was made last."""
        usage, customers = self._read(BILLS, day)
        return _summed((customers[meter], kwh) for meter, kwh in usage.items() if meter in customers)

    def month(self, until: Day) -> dict[str, Decimal]:
        """What each customer used until a day."""
        days = [day for of, day in self.read if of == BILLS and day <= until]
        return _summed(row for day in days for row in self.bills(day).items())

    def _read(self, name: str, day: Day) -> Any:
        read = self.read.get((name, day))
        return read if isinstance(read, tuple) else self.inputs((name, day)) if read else _NOTHING[name]


_NOTHING: Final[Mapping[str, Any]] = {METERS: ({}, []), READINGS: ({}, []), BILLS: ({}, {}), PARTS: ({}, {})}


def _summed(rows: Any) -> dict[str, Decimal]:
    sums = dict[str, Decimal]()
    for key, value in rows:
        sums[key] = sums.get(key, Decimal("0.00")) + value
    return dict(sorted(sums.items()))


class Killed(BaseException):
    """Ends a run as a signal does: nothing catches it."""


@contextmanager
def killed_at(number: int) -> Iterator[None]:
    """Ends the run at the time when it would note what it has written for the so manieth time."""
    put, left = Periods.put, [number]

    def dying(self: Periods, *arguments: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        put(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Periods, "put", dying)
        with pytest.raises(Killed):
            yield


class History:
    """A project in which things happen to days, beside the model of it.

    Attributes:
        project: The project.
        model: What is in its tables.
        log: What has happened, for the message of a history that ends otherwise than a fresh build.
    """

    def __init__(self, project: Project, model: Model) -> None:
        """Nothing happens yet."""
        self.project, self.model, self.log = project, model, list[str]()

    @classmethod
    def begun(cls, spark: SparkSession, home: Path, order: Sequence[Day]) -> "History":
        """Days that run in an order, with meters whose customers change."""
        chosen, begun = random.Random(repr(order)), cls(Project(spark, home), Model())
        for day in sorted(order):
            begun.deliver("readings", day, FIRST_FILE, readings(chosen, day, file=FIRST_FILE))
            begun.deliver("meters", day, FIRST_FILE, changes(chosen, day, sorted(order)[:1]))
        for day in order:
            begun.run([day])
        return begun

    def copied(self, home: Path) -> "History":
        """The same in another home."""
        shutil.copytree(self.project.home, home)
        return History(Project(self.project.spark, home), copy.deepcopy(self.model))

    def deliver(self, source: str, day: Day, file: str, rows: list[dict[str, Any]]) -> None:
        """Writes a raw file."""
        self.project.deliver(source, day, file, rows)
        self.model.deliveries += 1
        self.model.raw.setdefault((source, day), {})[file] = self.model.deliveries, rows

    def withdraw(self, source: str, day: Day) -> None:
        """Deletes the second raw file of a day, if there is one."""
        self.project.withdraw(source, day, FURTHER)
        self.model.raw[source, day].pop(FURTHER, None)

    def run(self, days: Sequence[Day], *names: str) -> None:
        """Runs pipelines, or all, for days; after a kill, one may say that the day of that run has to run first."""
        try:
            self.project.run(days, *names)
        except InputError:
            assert any(not isinstance(read, tuple) for read in self.model.read.values())
        self.follow()

    def killed(self, day: Day, number: int) -> None:
        """A run of a day ends when it would note what it has written for the so manieth time."""
        with killed_at(number):
            self.project.run([day])
        self.follow()

    def run_stale(self) -> tuple[list[Run], list[Run]]:
        """Runs what was made of what has changed since; returns what ran, and what had to."""
        needed = self.model.stale()
        self.project.run_stale()
        return self.follow(), needed

    def ends(self, *, most: float = MOST) -> None:
        """Runs what is stale: all tables are as the model says then, and hardly more ran than had to.

        Args:
            most: How many days of pipelines may run for each that has to.
        """
        ran, needed = self.run_stale()
        assert len(ran) <= most * len(needed), (self.log, ran, needed)
        ran, _ = self.run_stale()  # a run that ended before a kill needs no other, and the model does not know of it
        assert ran == [], self.log
        assert self.wrong() == set(), self.log

    def wrong(self) -> set[str]:
        """The tables that have other rows than the model says."""
        content, expected = self.project.content(), self.model.content()
        return {name for name in TABLES if content[name] != expected[name]}

    def follow(self) -> list[Run]:
        """Tells the model what has run since."""
        ran, self.project.ran = self.project.ran, []
        for name, day, is_whole in ran:
            self.model.ran((name, day), whole=is_whole)
        return [(name, day) for name, day, _ in ran]

    def happens(self, chosen: random.Random, days: Sequence[Day]) -> None:
        """Something random to a random day, which runs then, or not."""
        day, event = chosen.choice(days), chosen.choice(EVENTS)
        self.log.append(f"{event} {day}")
        match event:
            case "late" | "corrected":
                file = FURTHER if event == "late" else FIRST_FILE
                self.deliver("readings", day, file, readings(chosen, day, file=file))
            case "withdrawn":
                self.withdraw("readings", day)
            case "meters":
                self.deliver("meters", day, FURTHER, changes(chosen, day, days))
            case "no meters":
                self.withdraw("meters", day)
            case "killed":
                self.killed(day, chosen.randrange(2, 12))
            case "stale":
                self.run_stale()
        if event == "again" or chosen.random() < 0.5:
            self.log.append(f"run {day}")
            self.run([day])
