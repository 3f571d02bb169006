"""The rules about an application that failed, or was stopped in its work."""

import signal
from typing import Final

from spark_app.eventlog.diagnoses.excerpts import error
from spark_app.eventlog.diagnoses.query import query_name
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding, rule
from spark_app.eventlog.model import kubernetes_pods
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.outcome import BAD, ending_of, stopped_jobs
from spark_app.formatting import quantity

TERMINATED: Final = 128 + signal.SIGTERM
"""The exit code of a program that SIGTERM has ended."""
_READ_ERROR: Final = "Read the error below the title of the report: of a Python function it ends with the failing line."
_READ_OUTPUT: Final = "The log has no error of Spark's: read the last lines of what the program printed."
_WHO_KILLED: Final = (
    "Find what ended it: a time limit of its scheduler, the cluster manager, a person, or the kernel for lack of "
    "memory (SIGKILL; see the log of the host, and lower spark.driver.memory or give the host more)."
)


@rule()
def failed_application(app: Application, _: Thresholds) -> list[Finding]:
    """The application failed or was killed.

    Evidence: its exit code, and the error of its last job, query or batch.
    Why: nobody got its result. It is always the first finding.
    Change: read the error; of a killed application, find what ended it.
    Threshold: none. `spark-app observe` knows the exit code (128 plus the number of the signal, if one killed it), and
        whether a log without an end belongs to a process that still runs. From a log alone an application failed if its
        last job, query or batch failed: Spark writes the exit code 0 for a Python program that raised an error, too.
    Cost: not estimated.
    """
    ending = ending_of(app)
    if ending.outcome not in BAD:
        return []
    where = "" if ending.query is None else f"; {query_name(app, ending.query)}"
    why = f"{where or '; its last job'}: {error(ending.error)}" if ending.error else ""
    advice = _WHO_KILLED if ending.outcome == "killed" else _READ_ERROR if ending.error else _READ_OUTPUT
    code = app.exit_code if app.process_exit_code is None else app.process_exit_code
    return [
        Finding(
            "failed_application",
            "warning",
            f"The application {_verb(ending.text)}{why}",
            advice,
            {"exit_code": code} if code else {},
            query=ending.query,
        )
    ]


def _verb(text: str) -> str:
    """`killed by SIGTERM` as a part of a sentence."""
    return f"was {text}" if text.startswith("killed") else text


@rule(subject="host")
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
        )
    ]
