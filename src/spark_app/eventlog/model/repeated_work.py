"""Tracks what was computed several times from the same rows, in bounded memory.

These are aggregates, joins, windows and Python functions of queries, and stages of RDDs.

Spark computes a DataFrame anew for each action, and changes its plan for each: it drops columns that the action does
not need, and filters earlier. So a step is the same in two queries if it does the same with the same rows, whatever
filters, projections and shuffles stand between: a filter of columns that a step groups by may stand before it.

Of RDDs, stages are the same that one line of the program ran, and that began with the same RDDs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, NamedTuple

from spark_app.eventlog.model.entities import Job, Query, StageAttempt
from spark_app.eventlog.model.operators import PYTHON, Operator, plan_of, rows_through
from spark_app.eventlog.model.plan_names import (
    CACHE_SCANS,
    EXPRESSION_ID,
    FILE_BYTES_READ,
    FILES_READ,
    LOCATION,
    OUTPUT_ROWS,
    REUSED_EXCHANGE,
    parts,
)
from spark_app.eventlog.model.repeated_reads import remember
from spark_app.eventlog.parse.events import RddInfo

MAX_REMEMBERED: Final = 2000
"""How many steps are remembered; those computed longest ago are forgotten."""
MAX_PLACES: Final = 100
"""How many of the queries or stages that computed a step are remembered."""
MAX_STEPS: Final = 50
"""How many steps of a query are looked at: the last ones."""
MIN_MS: Final = 500
"""Queries whose tasks took less than this are not looked at."""
_AGGREGATE: Final = re.compile(r"(?:Hash|ObjectHash|Sort)Aggregate\(keys?=\[(.*?)\], functions=\[(.*)\]", re.DOTALL)
_WITHOUT_NAME: Final = ("LocalTableScan", "Scan ExistingRDD", "Scan[", "MicroBatchScan", "ContinuousScan")
"""What the text of a source begins with that does not tell which rows these are."""
_MULTIPLIES: Final = ("Generate", "Expand")
_BY_ROW: Final = ("ArrowEvalPython", "BatchEvalPython")
"""Operators that call Python functions for each row by itself, so that a filter may stand before or behind."""
_PARTIAL: Final = re.compile(r"\b(?:partial|merge)_")
_JOIN: Final = re.compile(r"Join \[(.*?)\], \[(.*?)\], (\w+)", re.DOTALL)
_NAMED: Final = re.compile(r" AS ([^\s,\[\]]+)#(\d+)L?$")
_ATTRIBUTE: Final = re.compile(r"(?<![\w.`])[\w.`]*#(\d+)L?")
_MAX_TEXT: Final = 200
"""Texts that are longer are remembered by their digests."""


class StepTime(NamedTuple):
    """What a step took in a query, or in a stage of RDDs.

    Attributes:
        least_ms, most_ms: The run time of the tasks of stages that did nothing else, and of all that did some of it.
        likely_ms: The run time of these stages, shared among their operators by the rows that pass them.
        rows: How many rows of the largest source passed the filters before it; 0 if unknown.
    """

    least_ms: float
    likely_ms: float
    most_ms: float
    rows: float = 0.0


class Rows(NamedTuple):
    """What an operator gives: what was done with which rows, and the conditions of the filters that they passed since.

    In all texts, columns are how they were computed, and `#` stands behind those of sources.
    """

    text: str
    filters: frozenset[str]


@dataclass(slots=True)
class RepeatedStep:
    """A step that was computed several times.

    Attributes:
        name: The operator with its arguments; of RDDs, the line that ran the stages.
        is_of_rdds: Whether stages of RDDs computed it, and not queries.
        places: The numbers of the queries that computed it, or of the stages, each with what it took there.
        source_rows: The rows of the largest source, at most in any of these queries; 0 if unknown.
    """

    name: str
    is_of_rdds: bool = False
    places: dict[int, StepTime] = field(default_factory=dict)
    source_rows: float = 0.0

    @property
    def repeated(self) -> float:
        """Which share of the work was done again: all but what it takes to do it once with all rows of the source."""
        rows = sum(took.rows for took in self.places.values())
        if not self.source_rows or not rows:
            return 1 - 1 / len(self.places)
        return max(0.0, 1 - self.source_rows / rows)

    @property
    def likely_ms(self) -> float:
        """The task time of what was done again."""
        return self.repeated * sum(took.likely_ms for took in self.places.values())

    @property
    def least_ms(self) -> float:
        """The least task time of what was done again."""
        return self.repeated * sum(took.least_ms for took in self.places.values())

    @property
    def most_ms(self) -> float:
        """The most task time of what was done again."""
        return self.repeated * sum(took.most_ms for took in self.places.values())


class _Step(NamedTuple):
    """What is computed, by the digests of that, and its operator, which reads from those that it needs."""

    digests: tuple[str, ...]
    operator: Operator


class _Ran(NamedTuple):
    """The run time of the tasks of a stage, and the ids of what they have counted."""

    run_ms: int
    counted: set[int]


class RepeatedWork:
    """What was computed so far."""

    def __init__(self) -> None:
        """Nothing was computed yet."""
        self._steps: dict[str, RepeatedStep] = {}

    @property
    def steps(self) -> list[RepeatedStep]:
        """The steps that were computed several times."""
        return [step for step in self._steps.values() if len(step.places) > 1]

    def stage_ended(self, stage: StageAttempt, job: Job | None) -> None:
        """Takes note of a whole stage of RDDs; the log does not tell what Python functions it called."""
        info = stage.info
        begins = _begins_with(info.rdds)
        is_whole = bool(info.rdds) and info.tasks == info.rdds[0].partitions and not info.attempt
        if job is None or job.query is not None or job.batch is not None or not begins or not is_whole:
            return
        digest = digest_of(f"{info.name} {sorted(begins)}")
        self._note(
            digest, RepeatedStep(info.name, is_of_rdds=True), info.id, StepTime(0.0, *[float(stage.totals.run_ms)] * 2)
        )

    def query_ended(self, query: Query, stages: Sequence[StageAttempt], numbers: Mapping[int, int]) -> None:
        """Takes note of what a query has computed; a batch of a stream computes it from other rows each time."""
        if query.batch is not None or sum(stage.totals.run_ms for stage in stages) < MIN_MS:
            return
        try:
            plan = plan_of(query, numbers)
        except ValueError:
            return
        session = "" if query.operation is None else str(query.operation.session)
        ran = [_Ran(stage.totals.run_ms, {each.id for each in stage.info.accumulables}) for stage in stages]
        for step in _Steps(plan.root, query.id).found[-MAX_STEPS:]:
            source, passed = _source_rows(step.operator)
            took = _step_time(step.operator, plan.root, ran)._replace(rows=passed)
            for digest in step.digests if took.most_ms else ():
                known = RepeatedStep(step.operator.text or step.operator.name, source_rows=source)
                self._note(f"{session} {digest}", known, query.id, took)

    def _note(self, digest: str, step: RepeatedStep, place: int, took: StepTime) -> None:
        known = self._steps.pop(digest, None) or step
        if len(known.places) < MAX_PLACES:
            known.name, known.places[place] = step.name, took
            known.source_rows = max(known.source_rows, step.source_rows)
        remember(self._steps, digest, known, limit=MAX_REMEMBERED)


class _Steps:
    """The steps of a plan, each after those that it needs; columns are known by how they were computed."""

    def __init__(self, root: Operator, query: int) -> None:
        self._query = query
        self._columns: dict[str, str] = {}
        self.found: list[_Step] = []
        self._rows_of(root)

    def _rows_of(self, operator: Operator) -> Rows:
        if operator.name.startswith((*CACHE_SCANS, REUSED_EXCHANGE)):
            return self._source(operator)
        below = []
        for child in operator.children:  # a comprehension would be a frame more for each of 500 levels
            rows = self._rows_of(child)
            if not child.is_subquery:
                below.append(rows)
        if not below:
            return self._source(operator)
        if (aggregate := _AGGREGATE.match(operator.text)) is not None:
            return self._aggregated(operator, aggregate[1], aggregate[2], below[0])
        if (join := _JOIN.search(operator.text)) is not None and len(below) == 2:
            return self._joined(operator, join, below)
        return self._passed(operator, below)

    def _passed(self, operator: Operator, below: list[Rows]) -> Rows:
        """The rows of an operator that neither joins nor aggregates."""
        if operator.name == "Window":
            return self._windowed(operator, below[0])
        if operator.name == "Filter":
            condition = self._known(operator.text.removeprefix("Filter "))
            return below[0]._replace(filters=below[0].filters | {condition})
        if operator.name == "Project":
            self._name_columns(operator.text.removeprefix("Project [").removesuffix("]"))
        elif operator.name in _MULTIPLIES or PYTHON.search(operator.name):
            return self._called(operator, below[0])
        if len(below) == 1:
            return below[0]
        filters = frozenset[str]().union(*(each.filters for each in below))
        return Rows(_short(" ".join(each.text for each in below)), filters)

    def _called(self, operator: Operator, below: Rows) -> Rows:
        """Functions of Python, or those that make several rows of one."""
        is_by_row = operator.name in (*_MULTIPLIES, *_BY_ROW)
        rows = below if is_by_row else Rows(_texts(below), frozenset())
        text = _short(f"{operator.name} {self._known(operator.text)} {rows.text}")
        if operator.name not in _MULTIPLIES:
            self.found.append(_Step((digest_of(text),), operator))
        return Rows(text, rows.filters)

    def _source(self, operator: Operator) -> Rows:
        """A source by its text, or its files; rows that the program gives Spark have no name, and may be others."""
        below = [number for child in operator.inputs for _, each in child.walk() for number in each.accumulables]
        if below:  # those of what has filled a cache stay the same
            return Rows(f"{operator.name} of {min(below)}", frozenset())
        if operator.text.startswith(_WITHOUT_NAME):
            return Rows(f"{operator.name} of query {self._query}", frozenset())
        where = operator.metadata.get(LOCATION) or self._known(operator.text or operator.name)
        files = (operator.numbers.get(name) for name in (FILES_READ, FILE_BYTES_READ))
        return Rows(_short(" ".join([where, *(str(number) for number in files if number is not None)])), frozenset())

    def _aggregated(self, operator: Operator, keys: str, functions: str, below: Rows) -> Rows:
        kept = self._only_of(below.filters, keys)
        text = f"group [{self._known(keys)}]"
        is_merged = below.text.startswith(text)  # these are the groups of each part of the rows
        text = below.text if is_merged else f"{text} of {_short(_texts(Rows(below.text, below.filters - kept)))}"
        called = [_PARTIAL.sub("", self._known(each)) for each in parts(functions)]
        self.found.append(_Step(tuple(digest_of(f"{text} {each}") for each in called or [""]), operator))
        self._name_columns(functions)
        return Rows(text, kept)

    def _joined(self, operator: Operator, join: re.Match[str], below: Sequence[Rows]) -> Rows:
        sides = sorted(f"{self._known(keys)} of {each.text}" for keys, each in zip(join.groups(), below, strict=False))
        text = _short(f"join {join[3]} {' '.join(sides)}")
        self.found.append(_Step((digest_of(text),), operator))
        return Rows(text, below[0].filters | below[1].filters)

    def _windowed(self, operator: Operator, below: Rows) -> Rows:
        """`Window [functions], [columns that part the rows], [order]`."""
        functions, columns, *_ = (*parts(operator.text.removeprefix("Window ")), "", "")
        kept = self._only_of(below.filters, columns.strip("[]"))
        text = _short(f"window {self._known(functions)} {_texts(Rows(below.text, below.filters - kept))}")
        self.found.append(_Step((digest_of(text),), operator))
        return Rows(text, kept)

    def _only_of(self, filters: frozenset[str], columns: str) -> frozenset[str]:
        """The filters that need some columns only, which may as well stand behind what keeps these columns."""
        known = sorted((self._known(column) for column in parts(columns)), key=len, reverse=True)

        def rest(condition: str) -> str:
            for column in known:
                condition = condition.replace(column, "")
            return condition

        return frozenset(condition for condition in filters if "#" not in rest(condition))

    def _name_columns(self, texts: str) -> None:
        """Takes note of how columns are computed that get a name."""
        for text in parts(texts):
            named = _NAMED.search(text)
            if named is not None:
                self._columns[named[2]] = self._known(text[: named.start()])

    def _known(self, text: str) -> str:
        """A text in which each column is how it was computed, and ids are left out: they differ in each query."""
        replaced = _ATTRIBUTE.sub(lambda match: self._columns.get(match[1], EXPRESSION_ID.sub("#", match[0])), text)
        return _short(replaced)


def _begins_with(rdds: Sequence[RddInfo]) -> set[int]:
    """The RDDs that a stage begins with: those of sources and shuffles; none where it reads a cache."""
    known = {rdd.id: rdd for rdd in rdds}
    begins, open_ids, seen = set[int](), [rdd.id for rdd in rdds[:1]], set[int]()
    while open_ids:
        rdd = known[open_ids.pop()]
        if rdd.level.use_memory or rdd.level.use_disk:
            return set()
        seen.add(rdd.id)
        parents = [number for number in rdd.parents if number in known]
        open_ids += [number for number in parents if number not in seen]
        if not parents:
            begins.add(rdd.id)
    return begins


def digest_of(text: str) -> str:
    """A short text that stands for a long one."""
    return sha256(text.encode()).hexdigest()[:20]


def _short(text: str) -> str:
    """A text, or where it is long a digest of it, which seems to have columns of sources."""
    return text if len(text) <= _MAX_TEXT else f"{text[:40]}…{digest_of(text)}#"


def _texts(rows: Rows) -> str:
    return " ".join([rows.text, *sorted(rows.filters)])


def _step_time(step: Operator, root: Operator, stages: Sequence[_Ran]) -> StepTime:
    """What a step and all that it needs took in the stages of its query."""
    own = _numbers(step)
    others = [operator for _, operator in root.walk() if not own.issuperset(operator.accumulables)]
    least = likely = most = 0.0
    for run_ms, counted in stages:
        if counted.isdisjoint(own):
            continue
        inside = sum(
            rows_through(operator) for _, operator in step.walk() if not counted.isdisjoint(operator.accumulables)
        )
        beside = [rows_through(operator) for operator in others if not counted.isdisjoint(operator.accumulables)]
        most += run_ms
        least += 0 if beside else run_ms
        likely += run_ms * (inside / (inside + sum(beside)) if beside and inside else not beside)
    return StepTime(least, likely, most)


def _numbers(operator: Operator) -> set[int]:
    """The ids of what an operator counts, and those below it, but for those that have filled a cache."""
    if operator.name.startswith(CACHE_SCANS):
        return set()
    found = set(operator.accumulables)
    for child in operator.children:
        found |= _numbers(child)
    return found


def _source_rows(step: Operator) -> tuple[float, float]:
    """The rows of the largest source of a step, and how many of them passed the filters on it; 0 if unknown."""
    largest, passed = 0.0, 0.0
    for rows, kept in _sources(step, None):
        if rows > largest:
            largest, passed = rows, kept
    return largest, passed


def _sources(operator: Operator, filtered: float | None) -> Iterator[tuple[float, float]]:
    number = operator.numbers.get(OUTPUT_ROWS)
    inputs = operator.inputs
    if not inputs:
        if number is not None:
            yield number.value, number.value if filtered is None else filtered
        return
    if operator.name == "Filter":
        filtered = number.value if number is not None and filtered is None else filtered
    elif not (operator.is_wrapper or operator.name in ("Project", "ColumnarToRow")):
        filtered = None
    for child in inputs:
        yield from _sources(child, filtered)
