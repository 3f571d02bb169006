"""A long stage with fewer tasks than cores."""

from typing import Final

from spark_app.eventlog.diagnoses import trials
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.stage import MORE_OF_INPUT, StageView
from spark_app.eventlog.findings import Finding
from spark_app.formatting import count, duration, quantity

SIDE_BY_SIDE: Final = 0.1
SIDE_BY_SIDE_MOST: Final = 0.25
"""How much longer work takes in tasks side by side, usually and at most, and until the last of them ends. Project: 4 to
22 % in the pairs `too-few-partitions` of `truth/`."""


@rule(
    explains=("gc_pressure", "spill", "huge_partitions"),
    limits={"few_tasks_stage_ms": Limit(3000.0, "Too few tasks: the stage takes at least this.", ge=0)},
    cause="too_few_partitions",
    tries=(trials.SMALLER_FILE_PARTITIONS,),
)
def too_few_tasks(view: StageView) -> Finding | None:
    """A long stage with fewer tasks than cores.

    Evidence: tasks, cores, duration.
    Why: the other cores are idle.
    Change: the opposite of `tiny_tasks`. Usual causes of a single task are a window without `partitionBy`, a global
        limit, `coalesce(1)`, or a file that cannot be split.
    Threshold: at least one core without a task, in a stage of {few_tasks_stage_ms} (project).
        Explained by it: `gc_pressure`, `spill` and `huge_partitions` of the same stages, which come behind it.
    Cost: the idle time of the stage, less a tenth of what its work takes on all slots: tasks that compute side by side
        take longer, and do not end together (project). Its range is from a quarter of that less to the idle time. The
        rule ignores later attempts, which run only the missing tasks.
    """
    tasks = view.stage.info.tasks
    is_short = view.wall_ms < view.limits.few_tasks_stage_ms
    if is_short or view.stage.info.attempt or not view.slots or tasks > view.slots - 1:
        return None
    if view.idle_ms is None:
        return None
    causes = " (usual causes: a window without partitionBy, a global limit, coalesce(1), an unsplittable file)"
    spread = view.wall_ms - view.idle_ms
    remedy = view.more_partitions if view.is_shuffled else MORE_OF_INPUT
    return view.finding(
        "too_few_tasks",
        f"{quantity(tasks, 'task')} in {duration(view.wall_ms)}, where {count(view.slots)} could run at once",
        advice=f"Make more tasks: {remedy}{causes if tasks == 1 else ''}.",
        numbers={"tasks": tasks, "slots": view.slots, "stage_ms": view.wall_ms},
        cost_ms=max(0.0, view.idle_ms - SIDE_BY_SIDE * spread),
    ).within((view.idle_ms - SIDE_BY_SIDE_MOST * spread, view.idle_ms))
