"""A long stage with fewer tasks than cores."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from spark_app.eventlog.diagnoses import settings_advice, trials
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.stage import MORE_OF_INPUT, StageView
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.operators import Operator, plan_of
from spark_app.eventlog.model.plan_names import EXPRESSION_ID, FILE_BYTES_READ, FILES_READ, pattern_of_nodes
from spark_app.eventlog.model.repeated_reads import file_scans, location, ran_in
from spark_app.eventlog.parse.events import RddInfo
from spark_app.formatting import count, duration, quantity, size
from spark_app.redaction import excerpt

SIDE_BY_SIDE: Final = 0.1
SIDE_BY_SIDE_LIKELY: Final = 0.25
"""How much longer work takes in tasks side by side, usually and at most, and until the last of them ends. Project: 4 to
22 % in the pairs `too-few-partitions` of `truth/`."""
MAX_NAME: Final = 100
_SINGLE: Final = "Exchange SinglePartition"
_LIMIT: Final = pattern_of_nodes(["GlobalLimit", "CollectLimit"])
_JDBC: Final = re.compile(r"Scan JDBCRelation\((.*?)\) \[numPartitions=\d+\]", re.DOTALL)
_HASHED: Final = re.compile(r"Exchange hashpartitioning\((.*), (\d+)\), ")
_MERGES: Final = re.compile(r'"AQEShuffleRead')
LEAST_BYTES: Final = 1024**2
"""Adaptive execution merges partitions of a shuffle that are smaller, even where cores then have none: the default of
`spark.sql.adaptive.coalescePartitions.minPartitionSize`."""
_PACKED: Final = re.compile(r"\.(gz|gzip|zip|snappy|lz4|zst|zstd|deflate)$")
_LINES: Final = re.compile(r"^(csv|json|text|xml)$", re.IGNORECASE)
"""The formats of lines, which are read by several tasks only where nothing packs them: in others, parts are packed."""


class _Cause(NamedTuple):
    """What the plan or the RDDs say about why there are few tasks, and what to do about that."""

    name: str
    text: str
    remedy: str


@rule(
    explains=("gc_pressure", "spill", "huge_partitions"),
    limits={"few_tasks_stage_ms": Limit(3000.0, "Too few tasks: the stage takes at least this.", ge=0)},
    cause="too_few_partitions",
    tries=(trials.SMALLER_FILE_PARTITIONS,),
)
def too_few_tasks(view: StageView) -> Finding | None:
    """A long stage with fewer tasks than cores.

    Evidence: tasks, cores, duration, and what has made so few: a `Coalesce` of more partitions, a JDBC scan with too
        few, files of lines that are packed, a window without `partitionBy`, a limit, small partitions of a shuffle that
        adaptive execution has merged, or a key with one value.
    Why: the other cores are idle.
    Change: `repartition(n)` instead of `coalesce(n)`, which makes all that stands before it run in n tasks; for JDBC
        the options `partitionColumn`, `lowerBound`, `upperBound` and `numPartitions`; files that can be split, or a
        `repartition` behind the read; `partitionBy` for a window; `repartition(n)` before dear functions of few rows; a
        key with more values. Else the opposite of `tiny_tasks`.
    Threshold: at least one core without a task, in a stage of {few_tasks_stage_ms} (project).
        Explained by it: `gc_pressure`, `spill` and `huge_partitions` of the same stages, which come behind it.
    Cost: the idle time of the stage, less a tenth of what its work takes on all slots: tasks that compute side by side
        take longer, and do not end together (project). Its range is from a quarter of that less to the idle time. The
        rule ignores later attempts, which run only the missing tasks.
    """
    tasks = view.stage.info.tasks
    is_short = view.wall_ms < view.limits.few_tasks_stage_ms
    if is_short or view.stage.info.attempt or not view.slots or tasks > view.slots - 1:
        return None
    if view.idle_ms is None:
        return None
    cause = next(_causes(view), None) or _Cause("", "", f"Make more tasks: {_more_tasks(view)}.")
    spread = view.wall_ms - view.idle_ms
    return view.finding(
        "too_few_tasks",
        f"{quantity(tasks, 'task')} in {duration(view.wall_ms)}, where {count(view.slots)} could run at once"
        f"{cause.text}",
        advice=cause.remedy,
        numbers={"tasks": tasks, "slots": view.slots, "stage_ms": view.wall_ms},
        cost_ms=max(0.0, view.idle_ms - SIDE_BY_SIDE * spread),
        cause=cause.name,
    ).within((view.idle_ms - SIDE_BY_SIDE_LIKELY * spread, view.idle_ms))


def _more_tasks(view: StageView) -> str:
    return view.more_partitions if view.is_shuffled else MORE_OF_INPUT


def _causes(view: StageView) -> Iterator[_Cause]:
    """What has made few tasks, as far as the log shows it."""
    info, query = view.stage.info, view.app.query_of(view.app.job_of(view.stage))
    operators = [] if query is None else _operators(view, query)
    yield from _coalesced(info.rdds, info.tasks)
    yield from _read_by_jdbc(info.rdds, operators, info.tasks)
    yield from _packed(operators, info.tasks)
    if query is not None:
        yield from _taken(view, query)
    yield from _merged(view, operators)
    is_single = any(each.text.startswith(_SINGLE) for each in operators)
    if query is not None and is_single and info.tasks == 1 and view.is_shuffled:
        yield from _brought_together(operators, query)


def _coalesced(rdds: list[RddInfo], tasks: int) -> Iterator[_Cause]:
    """`coalesce(n)` of more partitions, of a DataFrame or an RDD."""
    partitions = {rdd.id: rdd.partitions for rdd in rdds}
    for rdd in rdds:
        before = max((partitions.get(parent, 0) for parent in rdd.parents), default=0)
        if rdd.name == "CoalescedRDD" and rdd.partitions == tasks < before:
            yield _Cause(
                "coalesce",
                f": coalesce({tasks}) of {count(before)} partitions makes {quantity(tasks, 'task')} of all that stands "
                "before it",
                f"Use repartition({tasks}) instead of coalesce({tasks}): what stands before it then runs in "
                f"{count(before)} tasks, for the price of a shuffle. Call it last, right before the write: what stands "
                f"behind it runs in {quantity(tasks, 'task')}, too.",
            )


def _read_by_jdbc(rdds: list[RddInfo], operators: list[Operator], tasks: int) -> Iterator[_Cause]:
    """A table of a database, which is read in as many parts as its options say: one without them."""
    for rdd in rdds:
        if rdd.name == "JDBCRDD" and rdd.partitions == tasks:
            parts = "without partitionColumn" if tasks == 1 else f"in {count(tasks)} partitions"
            table = next((found[1] for each in operators if (found := _JDBC.match(each.name))), "a table")
            yield _Cause(
                "jdbc",
                f": JDBC reads {excerpt(table, MAX_NAME)} {parts}",
                "Read it by several connections: the options partitionColumn (a number, a date or a timestamp, best "
                "with an index), lowerBound, upperBound and numPartitions, all four together; rows beyond the bounds "
                "are read, too. Without such a column, DataFrameReader.jdbc(predicates=[...]) takes a condition "
                "for each part.",
            )


def _packed(operators: list[Operator], tasks: int) -> Iterator[_Cause]:
    """Files that one task each has to read, since they are packed as a whole."""
    for scan in file_scans(operators):
        files, total = scan.numbers[FILES_READ].value, scan.numbers[FILE_BYTES_READ].value
        is_of_lines = _LINES.match(scan.metadata.get("Format", "") or scan.name.removeprefix("Scan ").strip())
        packing = _PACKED.search(location(scan))
        if is_of_lines and packing and files <= tasks:
            yield _Cause(
                "packed",
                f": it reads {quantity(files, 'file')} of {size(total)}, which {packing[1]} has packed so that no task "
                "can read a part",
                "Pack the files by bzip2, or not at all, write more and smaller ones, or Parquet, which is packed in "
                "parts. Until then, repartition(n) behind the read lets n tasks do what follows.",
            )


def _merged(view: StageView, operators: list[Operator]) -> Iterator[_Cause]:
    """Partitions of a shuffle that adaptive execution has merged: since they are small, or since one has all rows."""
    info, bytes_read = view.stage.info, view.stage.totals.shuffle_read_bytes
    shuffle = next((found for each in operators if (found := _HASHED.match(each.text))), None)
    is_merged = any(_MERGES.search(rdd.scope or "") and rdd.partitions == info.tasks for rdd in info.rdds)
    if shuffle is None or not is_merged or int(shuffle[2]) <= info.tasks:
        return
    more = count(int(4 * (view.slots or 1)))
    keys = excerpt(EXPRESSION_ID.sub("", shuffle[1]), MAX_NAME)
    if bytes_read <= 2 * info.tasks * LEAST_BYTES:
        yield _Cause(
            "merged",
            f": adaptive execution has merged the {shuffle[2]} partitions of the shuffle by {keys}, which have only "
            f"{size(bytes_read)}",
            f"Call repartition({more}) behind the shuffle by {keys}, before what takes long: adaptive execution merges "
            "no partitions of a repartition with a number. If the join, the aggregate or the window itself takes long, "
            "set spark.sql.adaptive.coalescePartitions.minPartitionSize (default 1MB) lower.",
        )
    elif info.tasks == 1 and bytes_read > 4 * LEAST_BYTES and _is_spread(view):
        yield _Cause(
            "one_key",
            f": nearly all of {size(bytes_read)} have one value of {keys}, and so come into one partition of "
            f"{shuffle[2]}",
            f"Group by more values than {keys} has: add a part to the key, such as F.col('id') % {more}, and combine "
            "the results of the parts in a second groupBy; for rows that need no group, use mapInPandas.",
        )


def _is_spread(view: StageView) -> bool:
    """Whether adaptive execution leaves as many partitions as there are cores, if it can."""
    return not settings_advice.is_off(view.settings, settings_advice.PARALLELISM_FIRST)


def _taken(view: StageView, query: Query) -> Iterator[_Cause]:
    """An action that needs few rows, and so computes one partition first, and others only if these are too few."""
    last = max(view.stage.info.rdds, key=lambda rdd: rdd.id, default=None)
    if last is not None and last.partitions > view.stage.info.tasks and _LIMIT.search(query.plan):
        yield _Cause(
            "taken",
            f": an action that takes few rows, as show, take and first do, computes {count(view.stage.info.tasks)} of "
            f"{count(last.partitions)} partitions first, and the others later",
            "Where the result has few rows, collect() it, or sort it by orderBy before show: either computes all "
            "partitions at once. Or persist() and count() it first, if it is used again.",
        )


def _brought_together(operators: list[Operator], query: Query) -> Iterator[_Cause]:
    """All rows in one partition, by a window or a limit."""
    if any(each.name == "Window" for each in operators):
        yield _Cause(
            "window",
            ": a window without partitionBy brings all rows into one partition",
            "Give the window a partitionBy; where it needs all rows, as for a number of each row, aggregate first, or "
            "use monotonically_increasing_id or zipWithIndex.",
        )
    elif _LIMIT.search(query.plan):
        yield _Cause(
            "limit",
            ": a limit brings all rows that are left into one partition",
            "Call limit last, or repartition(n) behind it, so that n tasks do what follows; sample takes a share of "
            "the rows without bringing them together.",
        )


def _operators(view: StageView, query: Query) -> list[Operator]:
    """The operators of a query that ran in the stage; none where the log has no plan."""
    try:
        plan = plan_of(query, view.app.numbers)
    except ValueError:
        return []
    return [operator for _, operator in plan.root.walk() if ran_in(operator, view.stage)]
