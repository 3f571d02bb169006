"""No executor used much of its heap."""

from spark_app.eventlog.diagnoses import limits, settings_advice, trials
from spark_app.eventlog.diagnoses.heap_use import executor_memory, measured
from spark_app.eventlog.diagnoses.rule import GIB, Limit, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import memory_settings
from spark_app.eventlog.model.application import Application
from spark_app.formatting import quantity, share, size


@rule(
    limits={
        "memory_over_ratio": Limit(
            0.7, "Too much memory: the highest use of an executor's heap is below this.", gt=0, le=1
        ),
        "memory_over_bytes": Limit(4 * GIB, "Too much memory: an executor has at least this.", ge=0),
        "memory_samples": limits.MEMORY_SAMPLES,
    },
    tries=(trials.LESS_HEAP,),
)
def memory_over(app: Application, limits: Thresholds) -> list[Finding]:
    """No executor used much of its heap.

    Evidence: the highest use, the configured size.
    Why: an executor could run more tasks, or have less memory.
    Change: `spark.executor.memory`, or more `spark.executor.cores`; in local mode `spark.driver.memory`, or more
        threads in `spark.master`.
    Threshold: below {memory_over_ratio} (DataFlint) of at least {memory_over_bytes} (project), with {memory_samples}
        reports of an executor (project). Where tasks spilled to disk, they lacked memory, whatever the use of the heap:
        the rule then says nothing.
    Cost: no time. By default Spark measures memory with each heartbeat (10 s), and logs the peaks of tasks that run at
        that moment. `spark.executor.metrics.pollingInterval=1s` measures every task, and
        `spark.eventLog.logStageExecutorMetrics=true` logs peaks by stage. Without reports the rule says nothing. The
        log does not contain off-heap memory or the memory of Python workers.
    """
    executors = measured(app, limits)
    memory = executor_memory(app)
    has_spilled = any(stage.totals.disk_spilled for stage in app.stages.values())
    if not executors or has_spilled or memory is None or memory < limits.memory_over_bytes:
        return []
    peak = max(executor.peak_heap or 0 for executor in executors)
    if peak >= limits.memory_over_ratio * memory:
        return []
    return [
        Finding(
            "memory_over",
            "info",
            f"No executor used more than {size(peak)} of {size(memory)} of heap ({share(peak / memory)}), by the "
            f"reports of {quantity(len(executors), 'executor')}.",
            f"Lower {settings_advice.now(app.properties, memory_settings.memory(app.properties))}, "
            f"or run more tasks at once ({memory_settings.cores(app.properties)}).",
            {"peak_heap_bytes": peak, "executor_memory_bytes": memory, "executors": len(executors)},
        ),
    ]
