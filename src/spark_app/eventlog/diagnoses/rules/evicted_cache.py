"""A cached DataFrame that is computed again, although each of its partitions had been computed before."""

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.judgement import least_cost
from spark_app.eventlog.diagnoses.rule import MAX_FINDINGS, rule
from spark_app.eventlog.diagnoses.stage import name_of
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import memory_settings
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.repeated_reads import CachedPlan
from spark_app.formatting import duration, quantity
from spark_app.redaction import excerpt


@rule()
def evicted_cache(app: Application, limits: Thresholds) -> list[Finding]:
    """A cached DataFrame that is computed again, although each of its partitions had been computed before.

    Evidence: the stages that computed parts of it again, and at most the time of tasks that they took for it.
    Why: blocks that find no memory are dropped, or not even stored, and each read computes them again.
    Change: a storage level with a disk (`MEMORY_AND_DISK`), a `spark.memory.fraction` that is below its default, more
        memory (`spark.executor.memory`; in local mode `spark.driver.memory`), fewer columns and rows in the cache, or
        no cache. The memory of executors that are lost or released is gone, too.
    Threshold: only the cost.
    Cost: for each stage the time of the tasks that first computed the cache, times the part that is computed again,
        and at most the run time of the tasks of the stage; divided by the mean number of running tasks. The part is
        how much the operators that fill the cache have counted once more. The log does not tell it of caches of RDDs.
        The rule tracks 1000 caches and reports the 5 that took longest.
    """
    least = least_cost(app, limits)
    plans = app.repeated_reads.cached_plans
    again = [plan for plan in plans if plan.again_ms and (app.usage.wall_of(plan.again_ms) or 0) >= least]
    return [_evicted(app, plan) for plan in sorted(again, key=lambda plan: plan.again_ms, reverse=True)[:MAX_FINDINGS]]


def _evicted(app: Application, plan: CachedPlan) -> Finding:
    where = "" if plan.worst is None else f", most of it by {name_of(app, plan.worst)}"
    settings = app.properties
    more = settings_advice.now(settings, memory_settings.memory(settings))
    return Finding(
        "evicted_cache",
        "warning",
        f"A cached DataFrame is computed again in {quantity(plan.stages, 'stage')} after all of it was computed; their "
        f"tasks took up to {duration(plan.again_ms)} for it{where}",
        "The cache does not fit, or was lost with an executor. "
        f"{settings_advice.enough_memory(settings)}Persist it with StorageLevel.MEMORY_AND_DISK, select fewer columns "
        f"and rows before cache(), give it more memory ({more}), or do not cache it.",
        {"stages": plan.stages, "again_task_ms": plan.again_ms, "fill_task_ms": plan.fill_ms},
        cost_ms=app.usage.wall_of(plan.again_ms),
        stage=plan.worst,
        query=plan.query,
        operator=excerpt(plan.name),
        cause=str(plan.worst),
    )
