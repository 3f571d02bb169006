"""On Kubernetes, the context was stopped while jobs ran: as when the pod of the driver is deleted or evicted."""

import signal
from typing import Final

from spark_app.eventlog.diagnoses.rule import Alert, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import kubernetes_pods
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.outcome import ending_of, stopped_jobs
from spark_app.formatting import quantity

TERMINATED: Final = 128 + signal.SIGTERM
"""The exit code of a program that SIGTERM has ended."""


@rule(
    subject="host",
    alert=Alert("SparkApplicationFailed"),
)
def stopped_driver(app: Application, _: Thresholds) -> list[Finding]:
    """On Kubernetes, the context was stopped while jobs ran: as when the pod of the driver is deleted or evicted.

    Evidence: the jobs that ran. A driver that gets SIGTERM ends its log in order, with exit code 0, or with 143 where
        the signal reaches a Python program, as in the image of this project.
    Why: nobody got the results of these jobs.
    Change: find what stopped it: a preemption or a drain (priorityClassName, a PodDisruptionBudget), an eviction (the
        limit that its message names), a person, or the program itself. No event log tells these apart; the pod does
        while it is there, and the events of Kubernetes do for an hour.
    Threshold: none. The log of a driver that was killed at once (`OOMKilled`) has no end, as that of one that runs.
    Cost: not estimated.
    """
    namespace, ending = kubernetes_pods.namespace(app.properties), ending_of(app)
    was_terminated = app.exit_code == TERMINATED and stopped_jobs(app) > 0
    if namespace is None or app.ended is None or not (was_terminated or ending.outcome == "incomplete"):
        return []
    pod, stopped = kubernetes_pods.driver(app.properties), quantity(stopped_jobs(app), "job")
    how = "its driver got SIGTERM" if was_terminated else "its program stopped it, or its driver got SIGTERM"
    asked = f"describe pod {pod}" if pod else "get events"
    return [
        Finding(
            "stopped_driver",
            "warning",
            f"The application was stopped while {stopped} ran: {how}, as when its pod is deleted, evicted or "
            "preempted.",
            f"`kubectl -n {namespace} {asked}` says what became of the driver while its pod is there (Evicted, with a "
            "message; the condition DisruptionTarget), and `kubectl get events` for an hour.",
        ),
    ]
