"""A large table that Spark broadcasts to each executor."""

from collections.abc import Iterator

from spark_app.eventlog.diagnoses import settings_advice, trials
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import MIB, Limit, rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import value
from spark_app.eventlog.model.plan_names import (
    BROADCAST_EXCHANGE,
    DATA_SIZE,
    OUTPUT_ROWS,
)
from spark_app.formatting import count, duration, size


@rule(
    limits={"broadcast_bytes": Limit(100 * MIB, "Large broadcast: its size is above this.", ge=1)},
    cause="broadcast_too_large",
    tries=(trials.NO_BROADCAST,),
)
def large_broadcast(view: QueryView) -> Iterator[Finding]:
    """A large table that Spark broadcasts to each executor.

    Evidence: bytes in memory, rows, time.
    Why: the driver collects the table and each executor holds it, so both may run out of memory.
    Change: remove the `F.broadcast` hint, lower `spark.sql.autoBroadcastJoinThreshold`, or broadcast only the rows and
        columns that the join needs.
    Threshold: more than {broadcast_bytes} (project: ten times Spark's default of the setting; DataFlint has 1 GiB).
    Cost: the time in which the driver built and sent the table. Collecting it does not count: a shuffle would cost as
        much.
    """
    for exchange in view.operators:
        sent = value(exchange, DATA_SIZE)
        if exchange.name != BROADCAST_EXCHANGE or sent is None or sent <= view.limits.broadcast_bytes:
            continue
        parts = [part for name in ("time to build", "time to broadcast") if (part := value(exchange, name)) is not None]
        cost = sum(parts) if parts else None
        rows = value(exchange, OUTPUT_ROWS)
        size_in_rows = "" if rows is None else f" ({count(rows)} rows)"
        took = "" if cost is None else f"; building and sending it took {duration(cost)}"
        yield view.finding(
            "large_broadcast",
            f"broadcasts {size(sent)}{size_in_rows} to each executor{took}",
            advice="Remove the F.broadcast hint, or lower "
            f"{settings_advice.now(view.settings, settings_advice.BROADCAST)} and "
            "spark.sql.adaptive.autoBroadcastJoinThreshold; or broadcast only the rows and columns needed.",
            operator=exchange,
            numbers={"broadcast_bytes": sent} | ({} if rows is None else {"broadcast_rows": rows}),
            cost_ms=cost,
        )
