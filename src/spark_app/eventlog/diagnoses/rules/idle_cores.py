"""Cores without tasks."""

from spark_app.eventlog.diagnoses import settings_advice, trials
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.formatting import duration, share
from spark_app.vocabulary.spark_settings import is_local


@rule(
    limits={
        "idle_ratio": Limit(0.5, "Idle cores: share of core time, more than this.", gt=0, le=1),
        "idle_core_ms": Limit(3_600_000.0, "Idle cores: idle core time, more than this.", ge=0),
    },
    tries=(trials.FEWER_EXECUTORS,),
)
def idle_cores(app: Application, limits: Thresholds) -> list[Finding]:
    """Cores without tasks.

    Evidence: idle core time, total core time.
    Why: idle cores cost money.
    Change: fewer executors (`spark.executor.instances`; `spark.cores.max` on standalone), or
        `spark.dynamicAllocation.enabled=true` with a shorter `spark.dynamicAllocation.executorIdleTimeout`.
    Threshold: {idle_ratio} (DataFlint) and {idle_core_ms} (project).
    Cost: no time. The rule ignores local mode (`local`, `local[...]`).
    """
    usage = app.usage
    busy = usage.task_ms * app.task_cpus
    idle = usage.core_ms - busy
    if (
        is_local(app.properties)
        or not app.is_whole
        or idle <= max(limits.idle_core_ms, limits.idle_ratio * usage.core_ms)
    ):
        return []
    return [
        Finding(
            "idle_cores",
            "warning",
            f"Of {duration(usage.core_ms)} of core time, {duration(idle)} were idle ({share(idle / usage.core_ms)}).",
            f"Use fewer executors (spark.executor.instances; spark.cores.max on standalone), or {_scaling(app)}.",
            {"idle_core_ms": idle, "core_ms": usage.core_ms, "idle_ratio": idle / usage.core_ms},
        ),
    ]


def _scaling(app: Application) -> str:
    timeout = settings_advice.now(app.properties, settings_advice.IDLE_TIMEOUT)
    if settings_advice.is_off(app.properties, settings_advice.DYNAMIC):
        return f"let Spark scale them: {settings_advice.now(app.properties, settings_advice.DYNAMIC)}"
    return f"release them sooner: a shorter {timeout}"
