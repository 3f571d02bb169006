"""The heap of executors was full."""

from spark_app.eventlog.diagnoses import limits, settings_advice, trials
from spark_app.eventlog.diagnoses.heap_use import executor_memory, measured
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import memory_settings
from spark_app.eventlog.model.application import Application
from spark_app.formatting import count, quantity, share, size


@rule(
    limits={
        "memory_under_ratio": Limit(
            0.95, "Too little memory: the highest use of an executor's heap is above this.", gt=0, le=1
        ),
        "memory_samples": limits.MEMORY_SAMPLES,
    },
    tries=(trials.MORE_HEAP,),
)
def memory_under(app: Application, limits: Thresholds) -> list[Finding]:
    """The heap of executors was full.

    Evidence: the highest use, the configured size, by the same reports as `memory_over`.
    Why: a larger partition runs out of memory.
    Change: the opposite of `memory_over`.
    Threshold: above {memory_under_ratio} (DataFlint).
    Cost: not estimated; garbage collection, spill and lost executors report it.
    """
    executors, memory = measured(app, limits), executor_memory(app)
    if memory is None:
        return []
    raised = settings_advice.now(app.properties, memory_settings.memory(app.properties))
    fewer = memory_settings.cores(app.properties)
    full = [executor for executor in executors if (executor.peak_heap or 0) > limits.memory_under_ratio * memory]
    if not full:
        return []
    peak = max(executor.peak_heap or 0 for executor in full)
    return [
        Finding(
            "memory_under",
            "warning",
            f"{count(len(full))} of {quantity(len(executors), 'executor')} used up to {size(peak)} of {size(memory)} "
            f"of heap ({share(peak / memory)}).",
            f"Raise {raised}, or run fewer tasks at once ({fewer}), before it runs out.",
            {"peak_heap_bytes": peak, "executor_memory_bytes": memory, "executors": len(full)},
        ),
    ]
