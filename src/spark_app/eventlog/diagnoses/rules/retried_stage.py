"""A second attempt of a stage."""

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.excerpts import error
from spark_app.eventlog.diagnoses.rule import Alert, rule
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.findings import Finding
from spark_app.formatting import duration, quantity


@rule(
    adds=("tasks", "stage_ms"),
    reports_always=True,
    cause="lost_shuffle",
    alert=Alert(
        "SparkRetries",
        "In the last hour of {application} so many tasks or stages failed that it cost time, or the job.",
    ),
)
def retried_stage(view: StageView) -> Finding | None:
    """A second attempt of a stage.

    Evidence: the tasks that ran again, their time, and why the previous attempt failed, if the log says so.
    Why: the shuffle output of a lost executor is lost too.
    Change: find out why the executor was lost. Decommissioning (`spark.decommission.enabled` with
        `spark.storage.decommission.enabled`; both are off by default) or an external shuffle service keeps the shuffle
        output.
    Threshold: any is an info, a warning if all cost enough.
    Cost: the duration of the attempt.
    """
    info = view.stage.info
    if not info.attempt:
        return None
    before = view.app.stages.get((info.id, info.attempt - 1))
    failure = before.info.failure if before is not None else None
    why = error(failure) if failure else "its shuffle output was lost"
    if before is None and not view.app.is_whole:  # in a whole log it was skipped until then
        why = "the log does not say why"
    return view.finding(
        "retried_stage",
        f"it ran {quantity(info.tasks, 'task')} again for {duration(view.wall_ms)}: {why}",
        advice=f"Find out why executors were lost (memory, disk, preemption). {_keep_output(view)}",
        numbers={"attempt": info.attempt, "tasks": info.tasks, "stage_ms": view.wall_ms},
        cost_ms=view.wall_ms,
        severity="info",
    )


def _keep_output(view: StageView) -> str:
    if not settings_advice.is_off(view.settings, settings_advice.SHUFFLE_SERVICE):
        return ""
    service, decommission = (
        settings_advice.now(view.settings, name)
        for name in (settings_advice.SHUFFLE_SERVICE, settings_advice.DECOMMISSION)
    )
    return (
        f"An external shuffle service keeps their output: {service}; so does decommissioning: {decommission} "
        "with spark.storage.decommission.enabled."
    )
