"""Windows whose frame has thousands of rows, all of which Spark aggregates anew for each row."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import MAX_TEXT, Operator, rows_of
from spark_app.eventlog.model.plan_names import EXPRESSION_ID, parts
from spark_app.formatting import count, duration
from spark_app.redaction import excerpt

ROW_NS: Final = 40.0
LEAST_ROW_NS: Final = 8.0
"""What a row of a frame takes of a processor for each row, usually at most, and at least. Project: 17 ns where Java has
compiled it well, 89 ns in the pair `sliding-window` of `truth/`, whose JVM is slow on purpose."""
FULL_NS: Final = 4.0
"""Where rows of the stage take less than so many times the frame, its partitions have fewer rows than the frame."""
MAX_NAME: Final = 60
_SUMS: Final = ("sum", "avg", "count")
"""Aggregates of which those of a frame are the difference of two running ones."""
_FRAME: Final = re.compile(r"specifiedwindowframe\(RowFrame, (-?\d+|currentrow\$\(\)), (-?\d+|currentrow\$\(\))\)")
_CURRENT: Final = "currentrow$()"


class _Call(NamedTuple):
    """An aggregate of a frame, `avg(value)`, and the rows of the frame from the first to the last."""

    text: str
    first: int
    last: int

    @property
    def rows(self) -> int:
        """How many rows the frame has."""
        return self.last - self.first + 1


@rule(
    limits={"frame_rows": Limit(200, "Sliding windows: rows of a frame, at least.", ge=2)},
)
def sliding_window(view: QueryView) -> Iterator[Finding]:
    """Windows whose frame has thousands of rows, all of which Spark aggregates anew for each row.

    Evidence: the aggregate, the rows of its frame, the rows of the window, and what each took.
    Why: for `rowsBetween(-5000, 0)` Spark keeps the rows of the frame and adds all of them up at each row; only a frame
        that begins with `unboundedPreceding` and ends at the row grows from row to row.
    Change: of sums, means and counts, the difference of two running ones; of others, aggregate blocks of rows first,
        and slide over the blocks.
    Threshold: frames of {frame_rows} rows (project), in stages whose rows take so long that their partitions have as
        many. The rule ignores `rangeBetween`, since the plan does not tell the rows of its frames.
    Cost: 40 ns of a processor for each row of the frame of each row, at least 8 ns (project), longer where tasks waited
        for one; at most the run time of the tasks of the window; divided by the mean number of running tasks.
    """
    for operator in view.operators:
        calls = [call for call in _calls(operator) if call.rows >= view.limits.frame_rows]
        rows, run_ms = rows_of(operator), view.run_ms(operator)
        if not calls or not rows or not run_ms:
            continue
        updates = rows * sum(call.rows for call in calls)
        if run_ms * 1e6 < FULL_NS * updates:
            continue
        waited = _stretch(view, operator, run_ms)
        largest = max(calls, key=lambda call: call.rows)
        low, cost = (view.wall_of(min(run_ms, ns * updates / 1e6 * waited), operator) for ns in (LEAST_ROW_NS, ROW_NS))
        yield view.finding(
            "sliding_window",
            f"{largest.text} over rowsBetween({largest.first}, {largest.last}) adds up {count(largest.rows)} rows for "
            f"each of {count(rows)} rows anew; the tasks of the window took {duration(run_ms)}, "
            f"{count(round(1000 * run_ms / rows))} µs a row",
            advice=_advice(largest),
            operator=operator,
            numbers={"rows": rows, "frame_rows": largest.rows, "run_task_ms": run_ms},
            cost_ms=cost,
            cause=largest.text,
        ).within((low, cost))


def _stretch(view: QueryView, operator: Operator, run_ms: float) -> float:
    """How many times longer the tasks of an operator took than they had a processor; 1 where that is unknown."""
    cpu_ms = sum((stage.totals.cpu_ns or 0) / 1e6 for stage in view.stages_of(operator))
    return max(1.0, run_ms / cpu_ms) if cpu_ms else 1.0


def _calls(operator: Operator) -> Iterator[_Call]:
    """The aggregates of frames of rows that a window has."""
    if operator.name != "Window":
        return
    functions = next(parts(operator.text[:MAX_TEXT].removeprefix("Window ")), "").removeprefix("[").removesuffix("]")
    for function in parts(functions):
        frame = _FRAME.search(function)
        if frame is not None:
            text = excerpt(EXPRESSION_ID.sub("", function.partition(" windowspecdefinition")[0]), MAX_NAME)
            yield _Call(text, *(0 if each == _CURRENT else int(each) for each in frame.groups()))


def _advice(call: _Call) -> str:
    name = call.text.partition("(")[0]
    if name in _SUMS and call.first <= 0 <= call.last:
        mean = " A mean is such a sum divided by such a count." if name == "avg" else ""
        return (
            f"Take the difference of two running sums instead of {call.text}: s is F.{name.replace('avg', 'sum')}(...)"
            f".over(w.rowsBetween(Window.unboundedPreceding, {call.last})) of the same window w, and the sum of the "
            f"frame s - F.coalesce(F.lag('s', {call.rows}).over(w), F.lit(0)).{mean}"
        )
    return (
        f"Aggregate blocks of rows first, as {name} for each minute or each hundred rows, and slide over these blocks; "
        "or let the frame begin with Window.unboundedPreceding, which grows from row to row."
    )
