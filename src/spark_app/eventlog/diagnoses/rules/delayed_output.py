"""Streams in append mode that have written nothing yet, since their watermark is far behind the events."""

import re
from typing import Final

from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.findings import Finding
from spark_app.formatting import count, duration

OPERATORS: Final = ("stateStoreSave", "sessionWindowStateStoreSaveExec")
"""Names of the operators that keep aggregates until the watermark has passed the ends of their windows."""
APPEND: Final = re.compile(rb"StateStoreSave[^\"\\]*\bAppend\b")
"""Such an operator of a query in append mode, in the plan of a micro-batch."""


@rule(
    limits={
        "delayed_output_batches": Limit(10, "Delayed output: micro-batches that wrote nothing, at least.", ge=1),
        "delayed_output_ms": Limit(
            1_800_000.0, "Delayed output: how far the watermark is behind the newest event, at least.", ge=0
        ),
    },
)
def delayed_output(view: StreamView) -> Finding | None:
    """Streams in append mode that have written nothing yet, since their watermark is far behind the events.

    Evidence: the batches with rows, the aggregates that wait in the state, none of which was removed, and how far the
        watermark is behind the newest event.
    Why: in append mode a window is written once, when the watermark has passed its end, and the watermark is the newest
        event time less the delay of `withWatermark`. Until then a query that is well looks as if it were stuck.
    Change: a shorter delay, as late as events really come; or output mode `update`, where the sink can replace rows.
    Threshold: {delayed_output_batches} batches with rows, and a watermark {delayed_output_ms} behind that moves; of one
        that stands still, `stalled_watermark` says why (project).
    Cost: not estimated: the output is late, not the query.
    """
    states = [state for name, state in view.total.state.items() if name.partition(" ")[2] in OPERATORS]
    batches, newest, watermark = view.total.batches - view.total.empty, view.total.newest, view.total.watermark
    if batches < view.limits.delayed_output_batches or newest is None or watermark is None or not states:
        return None
    behind, waiting = newest - watermark, sum(state.rows or 0 for state in states)
    is_silent = all(state.removed == 0 for state in states) and waiting > 0 and not view.total.rows_out
    latest = view.quarter(3)
    is_moving = latest.first_watermark != latest.watermark  # else `stalled_watermark` says why
    if behind < view.limits.delayed_output_ms or not is_silent or not is_moving or not _appends(view):
        return None
    return view.finding(
        "delayed_output",
        f"has written nothing in {count(batches)} batches with rows: {count(waiting)} aggregates wait in its "
        f"state, and the watermark is {duration(behind)} behind the newest event, as withWatermark says",
        advice="In append mode a window is written when the watermark has passed its end. Shorten the delay of "
        "withWatermark to how late events really come, or use output mode update, where the sink can replace rows.",
        numbers={"waiting_rows": waiting, "watermark_delay_ms": behind},
        severity="info",
    )


def _appends(view: StreamView) -> bool:
    """Whether it is in append mode: a sink counts no rows, or the plan of one of its batches says so."""
    if view.total.rows_out == 0:
        return True
    plans = (
        bytes(query.plan)
        for query in view.app.queries.values()
        if query.batch is not None and query.batch.query == view.query.id
    )
    return any(APPEND.search(plan) for plan in plans)
