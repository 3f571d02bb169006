"""The rule about tasks that wait for something outside Spark: a service, a sleep, a lock, slow storage."""

from typing import Final

from spark_app.eventlog.diagnoses import processors
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.findings import Finding, rule
from spark_app.eventlog.model.entities import unmeasured_wait_ms
from spark_app.eventlog.model.operators import PYTHON
from spark_app.formatting import duration

_FEWER_CALLS: Final = (
    "Look for calls of services, sleeps, locks and slow storage in the functions of the stage: ask for many rows at "
    "once, keep connections, ask at the same time (threads, asyncio), or run more tasks at once, since a task that "
    "waits needs no processor."
)
MARGIN: Final = 4.0
"""How many times its slowdown a host may delay tasks where it is starved or was not measured: the scheduler favours
what computes for a short time, as deserialising does, and a program of another priority has another share."""


@rule()
def external_wait(view: StageView) -> Finding | None:
    """Tasks that waited most of their run time for something outside Spark: a service, a sleep, a lock, slow storage.

    An info, since many jobs have to ask a service.

    Evidence: the wait, the run time, and the time on a processor.
    Why: each task holds a core while it waits.
    Change: ask for many rows at once, keep connections, ask at the same time, or run more tasks at once, since a task
        that waits needs no processor.
    Threshold: at least {external_wait_ratio} of the run time (project: most of it). The wait is the run time without
        the time on a processor, garbage collection and waits for a shuffle. What else may explain it is subtracted: the
        bytes that were read, written and spilled, at `disk_bytes_per_second`; the time that Python workers were on a
        processor or waited for one; and the wait for a processor, which is the time on one times the slowdown of
        `cpu_starvation`, and four times that where the host was starved or nobody measured it (project); a stage whose
        tasks were deserialised too fast to tell is as slow as the application. Of stages that run Python, the
        rule says nothing where nobody measured the Python workers, because the log does not tell whether their
        functions compute or wait: `spark-app observe` samples those of a local master each second
        (`/proc/*/task/*/schedstat`). Threads that a task starts itself, as native libraries do, count as a wait.
    Cost: the wait, divided by the mean number of running tasks.
    """
    totals, python_ms, worked = view.stage.totals, _python_ms(view), (view.stage.totals.cpu_ns or 0) / 1e6
    if python_ms is None or totals.cpu_ns is None:
        return None
    most = unmeasured_wait_ms(totals) - _transfer_ms(view) - python_ms
    if most <= 0 or most < view.limits.external_wait_ratio * totals.run_ms:
        return None
    slowdown = processors.largest_slowdown(view)
    if slowdown is None:
        return None
    is_calm = processors.is_measured(view) and slowdown < 1 / view.limits.cpu_ratio
    waited = most - worked * (slowdown * (1 if is_calm else MARGIN) - 1)
    if waited <= 0 or waited < view.limits.external_wait_ratio * totals.run_ms:
        return None
    return view.finding(
        "external_wait",
        f"its tasks waited about {duration(waited)} of {duration(totals.run_ms)} of run time for something outside "
        "Spark",
        advice=_FEWER_CALLS,
        numbers={"waited_task_ms": waited, "run_task_ms": totals.run_ms, "cpu_task_ms": worked + python_ms},
        cost_ms=view.wall_of(waited),
        severity="info",
    )


def _python_ms(view: StageView) -> float | None:
    """How long Python workers of the stage were on a processor or waited for one; 0 without any, None if unknown."""
    if not any(PYTHON.search(f"{rdd.name} {rdd.scope}") for rdd in view.stage.info.rdds):
        return 0.0
    return processors.python_ms(view)


def _transfer_ms(view: StageView) -> float:
    """How long a disk may take for what the tasks read, wrote and spilled, in milliseconds."""
    totals = view.stage.totals
    moved = totals.input_bytes + totals.output_bytes + totals.shuffle_read_bytes + totals.shuffle_write_bytes
    return (moved + 2 * totals.disk_spilled) * 1000 / view.limits.disk_bytes_per_second
