"""Tracks repeated reads and caches of an application, in bounded memory."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

from spark_app.eventlog.model.entities import Job, Query, StageAttempt
from spark_app.eventlog.model.operators import Operator, Plan, plan_of
from spark_app.eventlog.model.plan_names import (
    BROADCAST_EXCHANGE,
    CACHE_SCANS,
    COMMAND,
    DELTA_LOG,
    EXPRESSION_ID,
    FILE_BYTES_READ,
    FILES_READ,
    LOCATION,
    PARTITION_FILTERS,
    SCAN_TIME,
    pattern_of_nodes,
)
from spark_app.eventlog.parse.events import RddInfo, counted

Key = TypeVar("Key")
Value = TypeVar("Value")
MAX_REMEMBERED: Final = 1000
"""How many sets of files, and how many caches, are remembered; those read longest ago are forgotten."""
MAX_NUMBERS: Final = 20_000
"""How many numbers of operators that fill caches are remembered."""
MAX_OPERATOR_NUMBERS: Final = 20
"""How many numbers of the operators that fill a cache are remembered to tell what is computed again."""
MAX_QUERIES: Final = 5
"""How many of the queries that have read the same files are named."""
SAVED_BY_CACHE: Final = 0.9
"""What a cache saves of a scan: reading it took a tenth of the scan in the pairs `repeated-scan` of `truth/`."""
DRIVER_COUNTS: Final = (BROADCAST_EXCHANGE, COMMAND)
"""Operators whose numbers come from the driver, and from no stage."""
_CACHE_SCAN: Final = pattern_of_nodes(CACHE_SCANS)
_INTERNAL: Final = ("Delta Table State", "mergeMaterializedSource")
_LOCATION: Final = f'"{LOCATION}"'.encode()
_PATHS: Final = re.compile(r"\[(.*)", re.DOTALL)


@dataclass(slots=True)
class Reads:
    """How often the same files were read without a cache.

    Attributes:
        location: Their paths.
        files, bytes: Of each scan.
        times: The number of scans.
        scan_ms: The task time of all scans; None where the format of a scan has none.
        shortest_ms, longest_ms, run_ms: The least and the most run time of the tasks that ran a scan, and the sum over
            the scans: the most task time that they take; None if no stage is known.
        queries: The first queries that read them.
    """

    location: str
    files: int
    bytes: int
    times: int = 0
    scan_ms: float | None = 0.0
    shortest_ms: float | None = None
    longest_ms: float = 0.0
    run_ms: float = 0.0
    queries: list[int] = field(default_factory=list)

    @property
    def repeated_ms(self) -> float | None:
        """The task time of all scans but one; where they have no time, what a cache of them probably saves."""
        if self.scan_ms is not None:
            return self.scan_ms * (self.times - 1) / self.times
        low, high = self.least_repeated_ms, self.most_repeated_ms
        return None if low is None or high is None else (low + high) / 2

    @property
    def least_repeated_ms(self) -> float | None:
        """The run time of the tasks of the shortest scan for each but one; None for scans that have a time."""
        is_measured = self.scan_ms is not None or self.shortest_ms is None
        return None if is_measured else (self.shortest_ms or 0) * (self.times - 1) * SAVED_BY_CACHE

    @property
    def most_repeated_ms(self) -> float | None:
        """The run time of the tasks of all scans but the longest; None for scans that have a time."""
        is_measured = self.scan_ms is not None or self.shortest_ms is None
        return None if is_measured else (self.run_ms - self.longest_ms) * SAVED_BY_CACHE

    def took(self, most_ms: float | None) -> None:
        """Takes the most task time that one more scan can have taken, if that is known."""
        if most_ms is None:
            return
        self.shortest_ms = most_ms if self.shortest_ms is None else min(self.shortest_ms, most_ms)
        self.longest_ms = max(self.longest_ms, most_ms)
        self.run_ms += most_ms


@dataclass(slots=True)
class Cache:
    """A cached RDD or DataFrame: the stage that filled it, the task time of that stage, and its uses.

    `uses` counts the scans in the plan of each query that ended, or the jobs of an RDD; the filling is one of them.
    """

    id: int
    name: str
    filled_in: tuple[int, int]
    fill_ms: int
    query: int | None
    uses: int = 0


@dataclass(slots=True)
class CachedPlan:
    """What a cached DataFrame is computed with, and what of it was computed again after all of it had been computed.

    Attributes:
        name: The operator that reads it, with its arguments.
        values, filled: What its operators have counted so far, and when all of it had been computed.
        fill_ms: The run time of the tasks until then.
        is_filled: Whether a task has run for each of its partitions.
        again_ms: At most the task time that it took to compute parts of it again.
        stages: How many stages did so.
        worst, query: The stage that took longest for it, and its query.
        worst_ms: How long that took.
    """

    name: str
    values: dict[int, int] = field(default_factory=dict)
    filled: dict[int, int] = field(default_factory=dict)
    fill_ms: int = 0
    is_filled: bool = False
    again_ms: float = 0.0
    stages: int = 0
    worst: tuple[int, int] | None = None
    query: int | None = None
    worst_ms: float = 0.0

    def computed(self, stage: StageAttempt, values: dict[int, int], query: int) -> None:
        """Takes what a stage has computed of it; an attempt that repeats a stage computes what was lost with it."""
        if stage.info.attempt:
            return
        if self.is_filled:
            self._again(stage, min(float(stage.totals.run_ms), self.fill_ms * self._part(values)), query)
        else:
            self.fill_ms += stage.totals.run_ms
            self.is_filled = stage.info.tasks >= sum(rdd.partitions for rdd in _cached(stage))
            self.filled = values
        self.values |= values

    def _part(self, values: dict[int, int]) -> float:
        """How much of it was computed, by the count of its operators that has grown least; at most all of it."""
        parts = [(value - self.values[key]) / self.filled[key] for key, value in values.items() if self.filled.get(key)]
        return max(0.0, min([1.0, *parts])) if parts else 0.0

    def _again(self, stage: StageAttempt, ms: float, query: int) -> None:
        if not ms:
            return
        self.again_ms += ms
        self.stages += 1
        if ms > self.worst_ms:
            self.worst, self.query, self.worst_ms = (stage.info.id, stage.info.attempt), query, ms


class RepeatedReads:
    """What was read so far; see `Reads` and `Cache`."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._reads: dict[tuple[str, str, int, int], Reads] = {}
        self._caches: dict[int, Cache] = {}
        self._filled: dict[int, int] = {}
        self._plans: dict[int, CachedPlan] = {}

    @property
    def cached_plans(self) -> list[CachedPlan]:
        """What cached DataFrames were computed with."""
        return list(self._plans.values())

    @property
    def reads(self) -> list[Reads]:
        """The sets of files that were read."""
        return list(self._reads.values())

    @property
    def caches(self) -> list[Cache]:
        """The caches that were filled, without those that Delta keeps for itself."""
        return [cache for cache in self._caches.values() if not cache.name.startswith(_INTERNAL)]

    def stage_ended(self, stage: StageAttempt, job: Job | None) -> None:
        """Takes note of what the stage has filled, or read, for the job that it ran for."""
        for rdd in _cached(stage):
            cache = self._caches.pop(rdd.id, None)
            if cache is None:
                key = (stage.info.id, stage.info.attempt)
                cache = Cache(rdd.id, rdd.name, key, stage.totals.run_ms, job.query if job else None)
            cache.name = rdd.name  # Delta names its caches when they are filled
            if job is None or job.query is None:
                cache.uses += max(1, stage.info.tasks // max(1, rdd.partitions))
            remember(self._caches, rdd.id, cache)

    def query_ended(self, query: Query, stages: Sequence[StageAttempt], numbers: Mapping[int, int]) -> None:
        """Takes note of the files and the caches that the query has read."""
        plan = bytes(query.plan)
        touched = {rdd.id for stage in stages for rdd in _cached(stage)} & self._caches.keys()
        for cache in touched:
            self._caches[cache].uses += max(1, len(_CACHE_SCAN.findall(plan)))
        query.reads_cache = any(self._caches[cache].query != query.id for cache in touched)
        with suppress(ValueError):
            self._note_caches(query, stages)
        if _LOCATION not in plan:
            return
        with suppress(ValueError):  # a plan that cannot be parsed has no known scans
            scans = list(file_scans(ran(plan_of(query, numbers), stages)))
            for scan in scans:
                self._scanned(query, scan, _most_ms(scan, scans, stages))

    def _note_caches(self, query: Query, stages: Sequence[StageAttempt]) -> None:
        """Takes note of the stages of a query that have computed caches."""
        if not _CACHE_SCAN.search(query.plan):
            return
        root = plan_of(query, query.numbers).root
        self._drop_numbers_of_others(query, root)
        computing = sorted((stage for stage in stages if _cached(stage)), key=lambda each: each.info.id)
        for scan in _cache_scans(root):
            below = sorted({number for operator in scan.below() for number in operator.accumulables})[
                :MAX_OPERATOR_NUMBERS
            ]
            self._note_computing(query, scan, below, computing)

    def _note_computing(
        self, query: Query, scan: Operator, below: Sequence[int], stages: Iterable[StageAttempt]
    ) -> None:
        """Takes note of the stages that have counted something for the operators below a scan of a cache."""
        for stage in stages:
            numbers = counted(stage.info.accumulables)
            values = {number: numbers[number] for number in below if number in numbers}
            known = self._plans.pop(below[0], None) or CachedPlan(scan.text or scan.name)
            if any(value > known.values.get(number, 0) for number, value in values.items()):
                known.computed(stage, known.values | values, query.id)
            remember(self._plans, below[0], known)

    def _drop_numbers_of_others(self, query: Query, root: Operator) -> None:
        """Accumulators below a cache keep counting across queries: only the query that filled it may report them."""
        for number in _below_caches(root) & query.numbers.keys():
            first = self._filled.get(number, query.id)
            remember(self._filled, number, first, limit=MAX_NUMBERS)
            if first != query.id:
                del query.numbers[number]

    def _scanned(self, query: Query, scan: Operator, most_ms: float | None) -> None:
        files, size = (int(scan.numbers[name].value) for name in (FILES_READ, FILE_BYTES_READ))
        filters = EXPRESSION_ID.sub("", scan.metadata.get(PARTITION_FILTERS, ""))
        key = (location(scan), filters, files, size)
        reads = self._reads.pop(key, None) or Reads(location(scan), files, size)
        reads.times += 1
        time = scan.numbers.get(SCAN_TIME)
        reads.scan_ms = None if time is None or reads.scan_ms is None else reads.scan_ms + time.value
        reads.took(most_ms)
        if query.id not in reads.queries[-MAX_QUERIES:]:
            reads.queries = [*reads.queries, query.id][:MAX_QUERIES]
        remember(self._reads, key, reads)


def ran(plan: Plan, stages: Sequence[StageAttempt]) -> Iterator[Operator]:
    """The operators that ran in these stages, each once.

    A plan also has operators that ran earlier to fill a cache or to write a reused shuffle. These stages did not update
    their accumulators. Operators that only the driver counts are included, unless they are below an earlier cache.
    """
    counted = {accumulable.id for stage in stages for accumulable in stage.info.accumulables}
    seen: set[tuple[int, ...]] = set()
    for operator in _ran(plan.root, counted):
        has_run = operator.name.startswith(DRIVER_COUNTS) or not counted.isdisjoint(operator.accumulables)
        if has_run and operator.accumulables not in seen:
            seen.add(operator.accumulables)
            yield operator


def _ran(operator: Operator, counted: set[int]) -> Iterator[Operator]:
    yield operator
    if operator.name.startswith(CACHE_SCANS) and not _has_run(operator, counted):
        return
    for child in operator.children:
        yield from _ran(child, counted)


def ran_in(operator: Operator, stage: StageAttempt) -> bool:
    """Whether tasks of a stage have counted something for an operator."""
    return any(accumulable.id in operator.accumulables for accumulable in stage.info.accumulables)


def _most_ms(scan: Operator, scans: Sequence[Operator], stages: Sequence[StageAttempt]) -> float | None:
    """The most task time that a scan can have taken: the run time of its stages, shared with their other scans."""
    own = [stage for stage in stages if ran_in(scan, stage)]
    shares = [stage.totals.run_ms / sum(ran_in(other, stage) for other in scans) for stage in own]
    return sum(shares) if shares else None


def _cache_scans(root: Operator) -> list[Operator]:
    """The scans of caches whose operators the plan shows."""
    scans = [operator for _, operator in root.walk() if operator.name.startswith(CACHE_SCANS)]
    return [scan for scan in scans if any(operator.accumulables for operator in scan.below())]


def _below_caches(root: Operator) -> set[int]:
    """The accumulators of all operators that fill a cache."""
    return {number for scan in _cache_scans(root) for operator in scan.below() for number in operator.accumulables}


def _has_run(cache_scan: Operator, counted: set[int]) -> bool:
    return any(not counted.isdisjoint(operator.accumulables) for operator in cache_scan.below())


def file_scans(operators: Iterable[Operator]) -> Iterator[Operator]:
    """The scans that count their files and bytes, without those of the transaction logs of Delta tables."""
    for operator in operators:
        text = operator.metadata.get(LOCATION)
        has_files = {FILES_READ, FILE_BYTES_READ} <= operator.numbers.keys()
        if has_files and text is not None and DELTA_LOG not in text:
            yield operator


def location(scan: Operator) -> str:
    """The paths that a scan reads, as Spark names them: `file:/data/sales`; cut by Spark where they are many."""
    text = scan.metadata.get(LOCATION, "")
    paths = _PATHS.search(text)
    return paths[1].removesuffix("]") if paths else text


def _cached(stage: StageAttempt) -> list[RddInfo]:
    return [rdd for rdd in stage.info.rdds if rdd.level.use_memory or rdd.level.use_disk]


def remember(known: dict[Key, Value], key: Key, value: Value, *, limit: int = MAX_REMEMBERED) -> None:
    """Adds a value at the end; removes the oldest value if there are too many."""
    known[key] = value
    if len(known) > limit:
        del known[next(iter(known))]
