"""JSON that is parsed once for each of its fields."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import MAX_TEXT, Operator, rows_of
from spark_app.eventlog.model.plan_names import EXPRESSION_ID
from spark_app.formatting import count, duration
from spark_app.redaction import excerpt

PARSE_US: Final = 2.0
LEAST_PARSE_US: Final = 1.0
"""What parsing a document for one field takes of a processor, usually and at least. Project: documents of 300
characters in the pair `repeated-json` of `truth/`."""
MAX_NAME: Final = 60
MAX_SHOWN: Final = 3
_FIELD: Final = re.compile(r"get_json_object\(([^(),]+#\d+|[^$]*?), \$\.?([^,()]*)\)")
"""A field of a document: the column that has it, and the path."""


@rule(
    limits={"json_fields": Limit(4, "Repeated JSON: fields of a column that are parsed one by one, at least.", ge=2)},
)
def repeated_json(view: QueryView) -> Iterator[Finding]:
    """JSON that is parsed once for each of its fields.

    Evidence: the column with the documents, its fields, the rows, and what a row took.
    Why: each `get_json_object` parses the whole document, for one field.
    Change: `from_json` with a schema of these fields, once, and the fields of its result.
    Threshold: {json_fields} fields of a column in one operator (project).
    Cost: 2 µs for each row and field but the first, at least half of it, as in the pair `repeated-json` of `truth/`; at
        most the run time of the tasks of the operator; divided by the mean number of running tasks.
    """
    for operator, counted in _with_fields(view):
        rows, run_ms = _rows(operator), view.run_ms(counted)
        for column, fields in _fields(operator).items():
            if len(fields) < view.limits.json_fields or not rows or not run_ms:
                continue
            again = rows * (len(fields) - 1) / 1000
            low, cost = (view.wall_of(min(run_ms, again * us), counted) for us in (LEAST_PARSE_US, PARSE_US))
            names = ", ".join(fields[:MAX_SHOWN])
            yield view.finding(
                "repeated_json",
                f"parses each document of {column} {count(len(fields))} times, once for each of its fields ({names}, "
                f"…): {count(rows)} rows in {duration(run_ms)} of tasks, {count(round(1000 * run_ms / rows))} µs each",
                advice=f"Parse {column} once instead of by get_json_object for each field: df.withColumn('parsed', "
                f"F.from_json('{column}', '{fields[0]} string, ...')) with all {count(len(fields))} fields, and then "
                f"parsed.{fields[0]} and so on.",
                operator=operator,
                numbers={"rows": rows, "fields": len(fields), "run_task_ms": run_ms},
                cost_ms=cost,
                cause=column,
            ).within((low, cost))


def _fields(operator: Operator) -> Mapping[str, list[str]]:
    """The fields that an operator reads of each column with documents, each once."""
    fields = defaultdict[str, list[str]](list)
    for column, path in _FIELD.findall(operator.text[: 2 * MAX_TEXT]):
        name, field = (excerpt(each, MAX_NAME) for each in (EXPRESSION_ID.sub("", column), path))
        if field not in fields[name]:
            fields[name].append(field)
    return fields


def _with_fields(view: QueryView) -> Iterator[tuple[Operator, Operator]]:
    """The operators of the query that read fields, each with that or the first below that counts something.

    Projections count nothing.
    """
    for operator in view.planned:
        if "get_json_object(" in operator.text and (counted := view.counted(operator)) is not None:
            yield operator, counted


def _rows(operator: Operator) -> float:
    """The rows that it takes."""
    return sum(rows_of(each) or 0 for each in operator.inputs)
