"""Times of samples of the JVM in tasks, scaled to the CPU time that Spark measured.

Java before version 25 looks at threads that seem to run, misses many, and of two threads that run at once may see one
ten times as often as the other. So neither the sums of its samples nor the shares of stages that run at the same time
are right. Spark measures the time of each task on a processor: that of a stage is divided among its samples.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.counts import MIN_STAGE_SAMPLES, NO_SAMPLES, Tally
from spark_app.stack_samples.samples import Process
from spark_app.stack_samples.task_runs import TaskRun


def factors(seen: Mapping[Place, Tally], tasks: Iterable[TaskRun]) -> dict[Place, float]:
    """What the times of samples of the JVM are multiplied by, for each stage and for tasks of unknown stages.

    A stage of too few samples to tell has the factor of all of them.

    Args:
        seen: The samples of threads of tasks at work.
        tasks: The task attempts of the application.
    """
    cpu_ms = defaultdict[Place, float](float)
    for task in tasks:
        cpu_ms[task.stage] += task.cpu_ms
    whole, measured = sum(seen.values(), NO_SAMPLES), sum(cpu_ms.values())
    if whole.samples < MIN_STAGE_SAMPLES or not measured:
        return {}
    is_enough = {place for place, tally in seen.items() if tally.samples >= MIN_STAGE_SAMPLES and cpu_ms.get(place)}
    return {
        place: cpu_ms[place] / tally.ms if place in is_enough else measured / whole.ms for place, tally in seen.items()
    }


def is_needed(processes: Sequence[Process]) -> bool:
    """Whether JVMs of the application had no samples of the time on a processor."""
    jvms = [process for process in processes if process.role in {"driver", "executor"}]
    return bool(jvms) and not any(process.is_of_cpu for process in jvms)
