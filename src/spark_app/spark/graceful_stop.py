"""Stops a streaming query between two micro-batches, which `StreamingQuery.stop` does not: it interrupts one."""

import time
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

LOOK_SECONDS: Final = 0.01
LOOKS: Final = 2
"""So many looks in a row find the query idle: a trigger that begins just now is not active at once."""


def stop_after_batch(query: StreamingQuery, seconds: float) -> bool:
    """Lets a query end its micro-batch in hand and begin no other, then stops it.

    Spark's own state of the query says that it has ended. It is set here without the interruption that
    `StreamingQuery.stop` adds. Waiting for the end of a micro-batch instead is too late where they follow each other
    without a pause: the next has begun before anybody hears of the end.

    Spark looks at that state before each micro-batch, and once more between its plan and its execution. So one that is
    only planned has offsets and no commit; nothing of it was written, and the next start executes it.

    Args:
        query: A query that runs in this process's JVM.
        seconds: How long the micro-batch has; then it is interrupted, and the next start repeats it.

    Returns:
        Whether no micro-batch was interrupted.
    """
    gateway: Any = SparkContext._gateway
    states = gateway.jvm.org.apache.spark.sql.execution.streaming.runtime
    query._jsq.streamingQuery().state().set(getattr(getattr(states, "TERMINATED$"), "MODULE$"))
    deadline, idle = time.monotonic() + seconds, 0
    while idle < LOOKS and time.monotonic() < deadline:
        idle = 0 if query.status["isTriggerActive"] else idle + 1
        time.sleep(LOOK_SECONDS)
    query.stop()
    return idle == LOOKS
