"""What an application wrote, by its event log: whether it may run again, and whether two runs wrote the same.

Only what Spark writes is known: not what a Python function or the driver writes by itself. The log has the names of
columns and no types.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.diagnoses.query import query_name
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.operators import NO_PLAN, Operator, plan_of
from spark_app.eventlog.model.plan_names import COMMAND, OUTPUT_ROWS
from spark_app.eventlog.model.targets import Target
from spark_app.formatting import count, quantity
from spark_app.redaction import excerpt, redacted

NOOP: Final = "noop"
"""Of Spark's data source that writes nothing."""
_READS_ONLY: Final = re.compile(
    r"(Set|Show\w*|Describe\w*|Desc\w*|Explain|CreateView|CreateTempViewUsing|DropTempView|SetCatalog\w*|SetNamespace|"
    r"RefreshTable|Refresh\w*|AddJar\w*|AddFile\w*|ListFiles|ListJars|ClearCache|UncacheTable|CacheTable\w*|"
    r"CreateFunction|Analyze\w*|Reset)(Command|Exec)?$"
)
"""Commands that may run any number of times."""
_WRITES: Final = re.compile(r"(Append|Overwrite|Replace|Atomic|Create|Write|Merge|Delete|Update|Drop|Alter|Truncate)")
"""How the names of other operators begin that change a table (`org.apache.spark.sql.execution.datasources.v2`)."""
_OVERWRITES: Final = re.compile(r"Overwrite|(Atomic)?(Create(OrReplace)|Replace)Table")
_COLUMNS: Final = re.compile(r"\[([^\[\]]*)\]$")
_OF_RUN: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{4,}")
"""Parts of a name that may be others in each run: a random id, a time."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a query wrote: the names of its columns, None where the log has none, and its rows."""

    columns: str | None
    rows: int


def unrepeatable(app: Application) -> list[str]:
    """Why the application must not run again: a line per reason; none if its log has nothing that speaks against it."""
    streams = app.streams.queries.values()
    reasons = [f"streaming query {stream.name or stream.id}: it goes on from its checkpoint" for stream in streams]
    read: set[str] = set()
    for query in app.queries.values():
        if query.root in app.queries or query.batch is not None:
            continue
        reason = _reason(query, first := _first(query), read)
        if reason is not None:
            reasons.append(f"{excerpt(query_name(app, query.id))}: {first.name.removeprefix(COMMAND)} {reason}")
        read |= _locations(query)
    saved = sum(
        stage.totals.output_bytes > 0 and app.query_of(app.job_of(stage)) is None for stage in app.stages.values()
    )
    if saved:
        reasons.append(f"{quantity(saved, 'stage')} of RDDs save files: Spark refuses a folder that exists")
    return reasons


def _reason(query: Query, first: Operator, read: set[str]) -> str | None:
    """Why a query must not run again; None if it may."""
    target, name = query.target, first.name.removeprefix(COMMAND)
    if not _changes(first) or NOOP in first.text.lower():
        return None
    shown = redacted(target.name) if target else "a place that the log does not name"
    if target is not None and (target.broker or "Jdbc" in target.source or "Kafka" in target.source):
        return f"writes to {shown} outside Spark"
    if not (_OVERWRITES.match(name) or (target is not None and target.mode == "Overwrite")):
        return f"{_verb(target)} {shown}"
    if target is not None and (target.path or target.name) in read:
        return f"overwrites {shown}, which was read before"
    return None


def _changes(first: Operator) -> bool:
    """Whether the first operator of a plan is a command that changes something."""
    name = first.name.removeprefix(COMMAND)
    is_command = first.name.startswith(COMMAND) or _WRITES.match(name) is not None
    return is_command and not _READS_ONLY.match(name)


def _verb(target: Target | None) -> str:
    match target.mode if target else None:
        case "Append":
            return "adds rows to"
        case "ErrorIfExists":
            return "fails if it runs again, since there is"
        case "Ignore":
            return "does nothing if it runs again, since there is"
    return "changes"


def _locations(query: Query) -> set[str]:
    """The paths and tables that a query reads."""
    texts = [text for _, each in _plan(query).walk() for text in (each.name, each.metadata.get("Location", ""))]
    return {word for text in texts for word in re.split(r"[\s,\[\]]+", text) if word}


def _first(query: Query) -> Operator:
    return next((each for _, each in _plan(query).walk() if not each.is_wrapper), NO_PLAN.root)


def _plan(query: Query) -> Operator:
    try:
        return plan_of(query, query.numbers).root
    except ValueError:
        return NO_PLAN.root


def outputs(app: Application) -> dict[str, list[Output]]:
    """What was written where; of several queries with one target, in an order of their own."""
    parts: dict[int, list[Query]] = defaultdict(list)
    for query in app.queries.values():
        parts[_root(app, query).id].append(query)
    found: dict[str, list[Output]] = defaultdict(list)
    for number, queries in parts.items():
        first = _first(app.queries[number])
        if not _changes(first):
            continue
        target = app.queries[number].target
        name = redacted(target.name) if target else first.name.removeprefix(COMMAND)
        found[_OF_RUN.sub("*", name)].append(Output(_columns(queries), _rows(app, queries)))
    return {name: sorted(each, key=lambda output: (output.rows, output.columns or "")) for name, each in found.items()}


def _root(app: Application, query: Query) -> Query:
    while query.root in app.queries and query.root != query.id:
        query = app.queries[query.root]
    return query


def _columns(queries: list[Query]) -> str | None:
    """The columns of the first write of files among a query and its parts."""
    found = (_COLUMNS.search(_first(query).text) for query in queries if _changes(_first(query)))
    return next((match[1] for match in found if match), None)


def _rows(app: Application, queries: list[Query]) -> int:
    """The rows that a query and its parts wrote: what its command counted, or else its tasks."""
    counted = [
        number for query in queries if (number := _first(query).numbers.get(OUTPUT_ROWS)) and _changes(_first(query))
    ]
    if counted:
        return round(sum(number.value for number in counted))
    stages = {id(stage): stage for query in queries for stage in app.stages_of(query)}.values()
    return sum(stage.totals.output_records - stage.wasted.output_records for stage in stages)


def difference(before: Mapping[str, list[Output]], now: Mapping[str, list[Output]]) -> str | None:
    """What a run wrote otherwise than another one; None if it wrote the same."""
    for name in sorted(before.keys() | now.keys()):
        earlier, later = before.get(name, []), now.get(name, [])
        if len(earlier) != len(later):
            return f"{name}: {quantity(len(later), 'write')} instead of {count(len(earlier))}"
        for one, other in zip(earlier, later, strict=True):
            if one.rows != other.rows:
                return f"{name}: {quantity(other.rows, 'row')} instead of {count(one.rows)}"
            if one.columns != other.columns:
                return f"{name}: columns {other.columns} instead of {one.columns}"
    return None
