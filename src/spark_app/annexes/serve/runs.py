"""All runs that this machine knows, by their profiles and records: pages of them, and what they cost."""

import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from spark_app.annexes.serve.run_files import RunFiles
from spark_app.annexes.serve.run_index import RunIndex
from spark_app.annexes.serve.stored_runs import searched
from spark_app.errors import InputError
from spark_app.eventlog.comparison import baselines
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.eventlog.cost import HOUR_MS, CoreHours
from spark_app.eventlog.labels import TAGS, USER
from spark_app.report import formatting
from spark_app.settings import Prices

PAUSE_FACTOR: Final = 5
"""How many times as long as the last look at the files took none follows."""
MAX_REST_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 0.3
"""How long a request waits for a look at the files; then it shows what was read before."""
APPLICATION: Final = "application"
OUTCOME: Final = "outcome"
DAY: Final = "day"
COLUMNS: Final = {APPLICATION: "name", OUTCOME: "outcome", DAY: "date(started / 1000, 'unixepoch')"}
"""What runs are grouped and chosen by beside their labels."""
LABEL: Final = "label."
"""What the name of a label has before it: `label.team`."""
OF_USER: Final = f"{LABEL}{USER}"
OF_TAGS: Final = f"{LABEL}{TAGS}"
BY_USER: Final = """(
    SELECT name, outcome, started, labels, text, users, nullif(part.key, '') AS user,
        iif(core_ms IS NULL, NULL, part.value) AS core_ms,
        iif(core_ms > 0, gib_ms * part.value / core_ms, gib_ms) AS gib_ms
    FROM run JOIN json_each(users) AS part
)"""
"""Runs once for each of their users, with the part that each had of them."""
MAX_WORDS: Final = 10
"""Words of a search; more are left out."""
OF_RUN: Final = """
SELECT run.name, about, run.id, outcome, started, duration_ms, core_ms, gib_ms, profile, labels, report.name, findings
FROM run LEFT JOIN report ON report.id = run.id
"""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of the list.

    Attributes:
        name: The pipeline of a spark-app run, else the name of the application.
        about: The slice of the run, or the workload of the application.
        id: Of the run, or of the application.
        started: Milliseconds since the epoch.
        duration_ms: None while it runs, and for a killed run without a recorded end.
        spent: What its executors took; None where they served other runs, too.
        profile: The path of its run profile in their folder, with which it can be compared; None without one.
        labels: Whom it belongs to.
        report: The name of its report; None without one.
        findings: The rules of its findings, worst first.
    """

    name: str
    about: str
    id: str
    outcome: str
    started: float
    duration_ms: float | None
    spent: CoreHours | None
    profile: str | None
    labels: dict[str, str]
    report: str | None
    findings: list[str]

    @property
    def core_hours(self) -> float | None:
        """Cores of its executors, multiplied by hours."""
        return None if self.spent is None else self.spent.core_hours

    @property
    def mood(self) -> str:
        """How its outcome is coloured."""
        return formatting.mood(self.outcome)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which runs are meant; by default all.

    Attributes:
        words: All of them are in the name, the slice, the id, the outcome or the labels of a run.
        equal: Values of labels (`label.team`), of `application`, `outcome` and `day`.
        first_day, last_day: Days of the start, as `2026-11-25`.
    """

    words: str = ""
    equal: Mapping[str, str] = field(default_factory=dict)
    first_day: str | None = None
    last_day: str | None = None

    def condition(self) -> tuple[str, list[str]]:
        """The condition in SQL, and its parameters."""
        words = searched(self.words).split()[:MAX_WORDS]
        parts = ["instr(text || ' ' || outcome, ?)"] * len(words)
        parameters = list(words)
        for key, value in self.equal.items():
            part, names = _equal(key)
            parts.append(part)
            parameters += [*names, value]
        for operator, day in ((">=", self.first_day), ("<=", self.last_day)):
            parts += [f"{COLUMNS[DAY]} {operator} ?"] if day else []
            parameters += [day] if day else []
        return " AND ".join(parts) or "TRUE", parameters


@dataclass(frozen=True, slots=True)
class Group:
    """What the runs with the same value took.

    Attributes:
        value: Of the label; None for the runs without one.
        runs: How many there are.
        unknown: How many of them did not say what they took, or what that cost.
        core_hours: Of the others.
        price: The same in money; None without prices.
        share: Of the core-hours of all chosen runs.
    """

    value: str | None
    runs: int
    unknown: int
    core_hours: float
    price: Decimal | None
    share: float | None


class Runs:
    """The runs of some files, by an index."""

    def __init__(self, files: RunFiles, *, patience: float = PATIENCE_SECONDS) -> None:
        """Reads nothing yet.

        Args:
            files: Run profiles, run records and reports.
            patience: Seconds that a look at the files may delay a request; one that takes longer goes on meanwhile, and
                is not repeated for some times as long as it took.
        """
        self._files, self._index = files, RunIndex(files)
        self._patience, self._lock = patience, threading.Lock()
        self._look: Future[None] | None = None
        self._next_look = 0.0

    def look(self) -> bool:
        """Reads what has changed since the last look; returns whether all has been read.

        Raises:
            OSError: A folder cannot be read.
            InputError: The storage refuses, or does not answer.
            sqlite3.Error: The index cannot be written.
        """
        with self._lock:
            if self._look is None or (self._look.done() and time.monotonic() >= self._next_look):
                self._look = Future()
                threading.Thread(target=self._refresh, args=(self._look,), daemon=True).start()
            look = self._look
        try:
            look.result(self._patience)
        except TimeoutError:
            return False
        return True

    def _refresh(self, look: "Future[None]") -> None:
        began = time.monotonic()
        try:
            self._index.refresh()
        except BaseException as error:  # noqa: BLE001 - the thread that waits for it raises it
            look.set_exception(error)
        else:
            took = time.monotonic() - began
            self._next_look = time.monotonic() + (
                min(PAUSE_FACTOR * took, MAX_REST_SECONDS) if took > self._patience else 0
            )
            look.set_result(None)

    def newest_first(self, chosen: Chosen, *, most: int, skipped: int = 0) -> list[RunRow]:
        """Some of the chosen runs."""
        condition, parameters = chosen.condition()
        rows = f"(SELECT * FROM run WHERE {condition} ORDER BY started DESC, id DESC LIMIT ? OFFSET ?) AS run"
        query = OF_RUN.replace("FROM run", f"FROM {rows}") + "ORDER BY started DESC, run.id DESC"
        return [_run(row) for row in self._rows(query, *parameters, most, skipped)]

    def count(self, chosen: Chosen) -> int:
        """How many runs are chosen."""
        condition, parameters = chosen.condition()
        number: int = self._rows(f"SELECT count(*) FROM run WHERE {condition}", *parameters)[0][0]
        return number

    def with_profile(self, path: str) -> RunRow | None:
        """The run with a run profile."""
        return next((_run(row) for row in self._rows(f"{OF_RUN} WHERE profile = ?", path)), None)

    def profile(self, path: str) -> RunProfile:
        """A run profile that was listed.

        Raises:
            InputError: It is there no more, or another version wrote it.
        """
        try:
            return baselines.decoded(self._files.content("profile", path), path)
        except OSError as error:
            raise InputError(f"{path} is not a run profile: {error}") from error

    def report(self, name: str) -> bytes | None:
        """A report; None without one of this name.

        Raises:
            InputError: The storage refuses, or does not answer.
        """
        try:
            return self._files.content("report", name)
        except OSError:
            return None

    def names(self, *, most: int) -> list[str]:
        """Names of pipelines and applications, in their order."""
        return [name for (name,) in self._rows("SELECT DISTINCT name FROM run ORDER BY name LIMIT ?", most)]

    def groups(self, chosen: Chosen, by: str, prices: Prices, *, most: int) -> list[Group]:
        """What runs took by a label, `application`, `outcome` or `day`: the most first, or the newest day.

        The shares are those of all groups, also of those beyond the most.
        """
        (rows, column, names), (condition, parameters) = _grouped(by), chosen.condition()
        known = "core_ms IS NOT NULL" + (" AND gib_ms IS NOT NULL" if prices.gib_hour else "")
        order = "1 DESC" if by == DAY else "4 DESC, 2 DESC, 1"
        query = f"""
            SELECT *, sum(core_ms) OVER () FROM (
                SELECT {column}, count(*), sum(NOT ({known})),
                    coalesce(sum(core_ms) FILTER (WHERE {known}), 0) AS core_ms, sum(gib_ms) FILTER (WHERE {known})
                FROM {rows} WHERE {condition} GROUP BY 1
            ) ORDER BY {order} LIMIT ?"""
        return [_group(row, prices) for row in self._rows(query, *names, *parameters, most)]

    def _rows(self, query: str, *parameters: object) -> list[Any]:
        with self._index.connected() as index:
            return index.execute(query, parameters).fetchall()


def _column(key: str) -> tuple[str, list[str]]:
    """What holds a value of each run, in SQL, and its parameters."""
    return (COLUMNS[key], []) if key in COLUMNS else ("json_extract(labels, ?)", [f'$."{key.removeprefix(LABEL)}"'])


def _equal(key: str) -> tuple[str, list[str]]:
    """The condition that a run has a value, and its parameters before that.

    A server is of each of its users, too, and a run of each of its tags.
    """
    if key == OF_USER:
        return f"? IN (SELECT key FROM json_each(users) UNION SELECT json_extract(labels, '$.{USER}'))", []
    column, names = _column(key)
    if key == OF_TAGS:
        return f"instr(',' || replace({column}, ', ', ',') || ',', ',' || replace(?, ', ', ',') || ',')", names
    return f"{column} = ?", names


def _grouped(key: str) -> tuple[str, str, list[str]]:
    """The rows that are added up by a key, what holds its value in them, and the parameters of that."""
    return (BY_USER, "user", []) if key == OF_USER else ("run", *_column(key))


def _run(row: tuple[Any, ...]) -> RunRow:
    name, about, id_, outcome, started, duration_ms, core_ms, gib_ms, profile, labels, report, findings = row
    spent = None if core_ms is None else _spent(core_ms, gib_ms)
    return RunRow(
        name,
        about,
        id_,
        outcome,
        started,
        duration_ms,
        spent,
        profile,
        json.loads(labels),
        report,
        json.loads(findings),
    )


def _group(row: tuple[Any, ...], prices: Prices) -> Group:
    value, runs, unknown, core_ms, gib_ms, all_ms = row
    spent = _spent(core_ms, gib_ms if unknown < runs else 0)
    return Group(value, runs, unknown, spent.core_hours, spent.price(prices), core_ms / all_ms if all_ms else None)


def _spent(core_ms: float, gib_ms: float | None) -> CoreHours:
    return CoreHours(core_ms / HOUR_MS, None if gib_ms is None else gib_ms / HOUR_MS)
