"""Queries that a loop runs one by one over the same rows, each for another value."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from spark_app.eventlog.diagnoses.query import query_name
from spark_app.eventlog.diagnoses.rule import MAX_FINDINGS, Limit, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import call_sites
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.operators import MAX_TEXT, Operator, plan_of
from spark_app.eventlog.model.plan_names import EXPRESSION_ID, FILE_BYTES_READ, FILES_READ
from spark_app.eventlog.model.repeated_reads import file_scans, location
from spark_app.formatting import count, duration
from spark_app.redaction import excerpt

MIN_SAVED_RATIO: Final = 0.5
"""What one query saves at least of all but the longest one. Project: the pair `query-loop` of `truth/`."""
MAX_QUERIES: Final = 1000
"""How many queries of a line are looked at."""
MAX_VALUE: Final = 80
MAX_SHOWN: Final = 3
_COMPARED: Final = re.compile(r"\(?(.+) (<=>|>=|<=|=|<|>) ([^()#]+)\)?", re.DOTALL)
"""A condition that compares an expression with a literal."""
_COLUMNAR: Final = ("Scan parquet", "Scan orc")
"""Scans that a filter without a cast lets skip rows: with one, `lost_pushdown` says so."""
_FIGURES: Final = re.compile(r"Aggregate\(keys=\[\], functions=\[(.*)\]\)", re.DOTALL)
Condition = tuple[str, str]
"""An expression, and how it is compared."""
FIGURE: Final[Condition] = ("", "")
"""No comparison: queries differ in what they compute of all rows, as the nulls of each column."""


class _Loop(NamedTuple):
    """Queries of a line that read the same, the condition that differs, and its values, in the order of queries."""

    queries: list[Query]
    condition: Condition
    values: list[str]


@rule(
    explains=("driver_gap", "repeated_scan"),
    explains_in="application",
    limits={"loop_queries": Limit(20, "Loops of queries: queries of a line that differ in one value, at least.", ge=2)},
)
def query_loop(app: Application, limits: Thresholds) -> list[Finding]:
    """Queries that a loop runs one by one over the same rows, each for another value.

    Evidence: the line, the queries, and the condition that differs, with some of its values; or the figures that each
        computes of all rows, as the nulls of each column.
    Why: each query reads all rows for one value, and costs the driver time to plan and to schedule.
    Change: one query for all values: `groupBy` the compared expression, or a join or `isin` with the values, and one
        `collect`; one `agg` with all figures; `partitionBy` for writes.
    Threshold: {loop_queries} queries of one line, which read the same files whole or the same cache, and of which most
        compare an expression with a value of their own, or aggregate all rows in a way of their own (project).
        Partitions that each query reads for itself are no such loop, nor is a filter that `lost_pushdown` reports. The
        rule ignores batches of streams.
        Explained by it: `driver_gap` and `repeated_scan`, which come behind it.
    Cost: the time of these queries without that of the longest, at most from the first to the last; at least half of it
        (project).
    """
    loops = [loop for queries in _lines(app, int(limits.loop_queries)) for loop in _loops(app, queries, limits)]
    worst = sorted(loops, key=_saved_ms, reverse=True)[:MAX_FINDINGS]
    return [_found(app, loop) for loop in worst]


def _lines(app: Application, least: int) -> Iterator[list[Query]]:
    """The queries that have ended of each line that started many."""
    lines = defaultdict[str, list[Query]](list)
    for query in app.queries.values():
        if query.ended is not None and query.batch is None and call_sites.parse(query.description) is not None:
            lines[query.description].append(query)
    return (queries[:MAX_QUERIES] for queries in lines.values() if len(queries) >= least)


def _loops(app: Application, queries: Sequence[Query], limits: Thresholds) -> Iterator[_Loop]:
    """What queries of a line read the same, and differ in a condition."""
    same = defaultdict[str, list[tuple[Query, dict[Condition, str]]]](list)
    for query in queries:
        try:
            operators = [each for _, each in plan_of(query, app.numbers).root.walk()]
        except ValueError:
            continue
        same[_sources(operators)].append((query, _conditions(operators)))
    for source, known in same.items():
        values = defaultdict[Condition, list[str]](list)
        for _, conditions in known:
            for condition, value in conditions.items():
                values[condition].append(value)
        varied = [each for each in values if _is_varied(values[each], len(known), limits)]
        most = max(varied, key=lambda each: (each != FIGURE, len(set(values[each]))), default=None)
        if source and most is not None:
            yield _Loop([query for query, _ in known], most, values[most])


def _is_varied(values: Sequence[str], queries: int, limits: Thresholds) -> bool:
    """Whether most queries have a value of their own."""
    different = len(Counter(values))
    return different >= limits.loop_queries and 2 * different > queries


def _sources(operators: Sequence[Operator]) -> str:
    """The files that a query reads, with their number and size; empty if it reads none."""
    scans = {
        f"{location(scan)} {scan.numbers[FILES_READ].value} {scan.numbers[FILE_BYTES_READ].value}"
        for scan in file_scans(operators)
    }
    return "\n".join(sorted(scans))


def _conditions(operators: Sequence[Operator]) -> dict[Condition, str]:
    """The conditions of the filters of a query that compare an expression with a literal, each with that."""
    conditions = dict[Condition, str](((FIGURE, figure),) if (figure := _figure(operators)) else ())
    is_columnar = any(operator.name.startswith(_COLUMNAR) for operator in operators)
    for operator in operators:
        if operator.name == "Filter":
            for part in _filter(operator).split(" AND "):
                compared = _COMPARED.fullmatch(_balanced(part))
                if compared is not None and not (is_columnar and compared[1].lstrip("(").startswith("cast(")):
                    conditions[_balanced(compared[1]), compared[2]] = compared[3]
    return conditions


def _filter(operator: Operator) -> str:
    return EXPRESSION_ID.sub("", operator.text[:MAX_TEXT]).removeprefix("Filter ")


def _figure(operators: Sequence[Operator]) -> str:
    """What a query computes of all rows together, as `count(1) where isnull(price)`; empty if it is something else."""
    aggregates = (each for each in operators if "Aggregate(" in each.text)
    found = _FIGURES.search(next((EXPRESSION_ID.sub("", each.text[:MAX_TEXT]) for each in aggregates), ""))
    filters = [_filter(operator) for operator in operators if operator.name == "Filter"]
    return "" if found is None else " where ".join([found[1], *filters[:1]])


def _balanced(text: str) -> str:
    """A text without the brackets that it opens and does not close, or closes and has not opened."""
    more = text.count("(") - text.count(")")
    text = text[max(0, more) :] if text.startswith("(" * max(0, more)) else text
    return text[:more] if more < 0 and text.endswith(")" * -more) else text


def _saved_ms(loop: _Loop) -> float:
    lengths = [(query.ended or query.started) - query.started for query in loop.queries]
    whole = max(query.ended or 0 for query in loop.queries) - min(query.started for query in loop.queries)
    return float(min(sum(lengths), whole) - max(lengths))


def _found(app: Application, loop: _Loop) -> Finding:
    saved = _saved_ms(loop)
    expression, compares = (excerpt(each, MAX_VALUE) for each in loop.condition)
    first = loop.queries[0]
    differs = f"another value of {expression} {compares}" if expression else "another figure:"
    values = ", ".join(excerpt(each, MAX_VALUE) for each in loop.values[:MAX_SHOWN])
    return Finding(
        "query_loop",
        "warning",
        f"{count(len(loop.queries))} queries read the same rows one by one, each for {differs} {values}, …: from "
        f"{query_name(app, first.id)} to {query_name(app, loop.queries[-1].id)}; all but the "
        f"longest took {duration(saved)}",
        _advice(expression, compares, is_write=first.target is not None),
        {"queries": len(loop.queries), "values": len(set(loop.values))},
        cost_ms=saved,
        query=first.id,
        cause=f"{first.description} {expression} {compares}",
    ).within((saved * MIN_SAVED_RATIO, saved))


def _advice(expression: str, compares: str, *, is_write: bool) -> str:
    """What one query does instead of all."""
    if not expression:
        return (
            "Compute all figures by one query: df.agg(...) with an aggregate for each, as F.count(F.when(condition, "
            "1)) for the rows of a filter, or F.count_distinct(column); a list of them can be made in the loop."
        )
    if is_write:
        return (
            f"Write all values by one query instead of one for each: add {expression} as a column, and "
            "df.write.partitionBy(that column)."
        )
    if compares in ("=", "<=>"):
        return (
            f"Ask for all values by one query, before the loop: df.groupBy({expression}).agg(...) for a figure of "
            f"each, or {expression} with isin(values) for rows; collect() that once, and look the values up in a dict."
        )
    return (
        f"Compute all of them by one query: df.agg(F.sum(F.when({expression} {compares} value, ...)), ...), with an "
        "aggregate for each value."
    )
