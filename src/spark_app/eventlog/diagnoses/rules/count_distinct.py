"""Several distinct aggregates in one aggregation, for which Spark copies each row."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from spark_app.eventlog.diagnoses import aggregates
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Alert, Limit, rule
from spark_app.eventlog.diagnoses.shuffle_cost import shared_ms
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import Operator, rows_of, value
from spark_app.eventlog.model.plan_names import EXPRESSION_ID, OUTPUT_ROWS, parts
from spark_app.formatting import count
from spark_app.redaction import excerpt

MAX_COLUMNS: Final = 200
"""Characters of the names of the columns."""
MIN_SAVED_RATIO: Final = 0.6
"""What is saved at least of the time of the copies: estimates of a column take time, too. Project: the pair
`count-distinct` of `truth/`."""
_COPY: Final = re.compile(r"^gid#\d+$")
_OF_COPY: Final = re.compile(r"FILTER \(WHERE \(gid#\d+ = ")
"""The column by which Spark tells the copies of a row, one for each distinct column (`RewriteDistinctAggregates`), and
where it counts one of them. `cube`, `rollup` and `GROUPING SETS` have another."""


class _Copied(NamedTuple):
    """Rows that were copied by `expand`, up to the last of `steps`, once for each of some columns."""

    expand: Operator
    steps: list[Operator]
    columns: list[str]
    rows_before: float
    rows: float


@rule(
    explains=("spill", "gc_pressure", "huge_partitions"),
    explains_in="query",
    limits={
        "distinct_copies": Limit(2.0, "Count distinct: rows behind `Expand` over those before it, at least.", gt=1)
    },
    alert=Alert(
        "SparkRowsMultiplied",
        "In the last hour of {application} an aggregation or a join made many rows of few and spent its time on them.",
    ),
)
def count_distinct(view: QueryView) -> Iterator[Finding]:
    """Several distinct aggregates in one aggregation, for which Spark copies each row.

    Evidence: the rows before and behind `Expand`, and the columns.
    Why: for `count(distinct a), count(distinct b)`, `Expand` makes a row for each of the columns, and all of them are
        grouped and shuffled by the keys and the columns.
    Change: `F.approx_count_distinct`, which needs no copies, where an estimate will do; or aggregate each column by
        itself, and join the results.
    Threshold: {distinct_copies} rows of each (project; Spark copies from two distinct columns on). The rule ignores
        `cube`, `rollup` and `GROUPING SETS`, whose copies are wanted.
        Explained by it: `spill`, `gc_pressure` and `huge_partitions` of the same queries, which come behind it.
    Cost: the run time of the stages from `Expand` to the groups of the copies, shared among their operators by the rows
        that pass them, without that of one copy, divided by the mean number of running tasks. Estimates take time,
        too: at least three fifths of it are saved (project).
    """
    for copied in _copied(view):
        copies = copied.rows / copied.rows_before
        if copies < view.limits.distinct_copies:
            continue
        most = view.wall_of(shared_ms(view, copied.steps) * (1 - 1 / copies), *copied.steps)
        columns = excerpt(", ".join(copied.columns), MAX_COLUMNS) or "several columns"
        yield view.finding(
            "count_distinct",
            f"Expand makes {count(copied.rows)} rows of {count(copied.rows_before)}, a copy for each distinct column "
            f"of one aggregation: {columns}",
            advice="Use F.approx_count_distinct(column), which needs no copies, where an estimate will do; else "
            "aggregate each column by itself (groupBy(keys).agg(F.countDistinct(column))), and join the results by "
            "the keys.",
            operator=copied.expand,
            numbers={"rows_before": copied.rows_before, "copied_rows": copied.rows},
            cost_ms=most,
            cause=columns,
        ).within(None if most is None else (most * MIN_SAVED_RATIO, most))


def _copied(view: QueryView) -> Iterator[_Copied]:
    """The rows that were copied for distinct aggregates."""
    for expand in view.operators:
        rows, below = value(expand, OUTPUT_ROWS), expand.inputs
        before = rows_of(below[0]) if expand.name == "Expand" and below else None
        if rows is None or not before:
            continue
        above = aggregates.above(view, expand)
        keys = aggregates.first_keys(above)
        steps = aggregates.up_to_groups(above, keys)
        counts = above[len(steps) :]
        if any(_OF_COPY.search(each.text) for each in counts):
            groups = set(parts(aggregates.first_keys(counts)))
            columns = [each for each in parts(keys) if each not in groups and not _COPY.match(each)]
            yield _Copied(expand, [expand, *steps], [EXPRESSION_ID.sub("", each) for each in columns], before, rows)
