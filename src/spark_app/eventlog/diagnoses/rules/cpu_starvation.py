"""Tasks that worked for a small part of the time in which they worked or waited for a processor."""

from typing import Final, NamedTuple

from spark_app.eventlog.diagnoses import limits, trials
from spark_app.eventlog.diagnoses.processors import host_of, is_measured, load_of, python_ms
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import contention
from spark_app.eventlog.model.entities import unmeasured_wait_ms
from spark_app.eventlog.model.host_load import Resource
from spark_app.eventlog.model.operators import has_python
from spark_app.eventlog.model.releases import release
from spark_app.formatting import count, duration, quantity, share
from spark_app.redaction import excerpt
from spark_app.vocabulary.spark_settings import is_local

_RESOURCES: Final[dict[Resource, str]] = {"cpu": "a processor", "io": "a disk", "memory": "memory"}

_ONE_THREAD: Final = (4, 0)
"""The release of Spark from which a task writes rows to its Python worker and reads results in one thread."""


@rule(
    subject="host",
    limits={
        "cpu_ratio": Limit(
            0.67,
            "CPU starvation: time on a processor over the same and the wait for one, below this on a measured host.",
            gt=0,
            le=1,
        ),
        "cpu_unmeasured_ratio": limits.CPU_UNMEASURED_RATIO,
    },
    tries=(trials.FEWER_CORES,),
)
def cpu_starvation(view: StageView) -> Finding | None:
    """Tasks that worked for a small part of the time in which they worked or waited for a processor.

    Evidence: both times, and the load of the host where it was measured.
    Why: other programs, or more tasks than the host has processors, take turns with them.
    Change: find what else runs on the host, or run fewer tasks at once; where the threads of a local master exceed the
        processors, the text says so.
    Threshold: less than {cpu_ratio} where the load of the host was measured, between a job that has its processors
        alone and one that shares them with an equal; less than {cpu_unmeasured_ratio} elsewhere, since to deserialise
        tasks takes longer than a processor for other reasons, too (project). The log has the time on a processor, but
        not what tasks waited for. The rule takes the wait from the slowdown of pure computation: the runnable threads
        for each processor, which `spark-app observe` samples each second (`/proc/loadavg`; `/proc/pressure/*` is
        shown), else how much longer Spark took to deserialise the tasks than they had a processor meanwhile. So tasks
        that wait for a service or a disk are not taken for starved, and a host that was measured and not busy is not
        blamed. The log does not contain the time of Python workers on a processor; `observe` measures those of a local
        master, on a processor or waiting for one, and that slowdown tells how much of it was which. A worker that
        computes beside the thread of its own task is no other program: of the runnable threads, each task counts once.
        Nor is the thread that writes rows to a worker before Spark 4.0 (SPARK-44705), which nothing measures.
    Cost: the time that tasks waited for a processor, at most their run time without waits for a shuffle and garbage
        collection, divided by the mean number of running tasks.
    """
    time = _processor_time(view)
    most = view.limits.cpu_ratio if is_measured(view) else view.limits.cpu_unmeasured_ratio
    if time is None or not time.waited_ms or time.worked_ms >= most * (time.worked_ms + time.waited_ms):
        return None
    worked, waited = time
    return view.finding(
        "cpu_starvation",
        f"its tasks worked for {duration(worked)} and waited about {duration(waited)} for a processor{_evidence(view)}",
        advice=_advice(view),
        numbers={"cpu_task_ms": worked, "waited_task_ms": waited, "cpu_ratio": worked / (worked + waited)},
        cost_ms=view.wall_of(waited),
    )


class _ProcessorTime(NamedTuple):
    """How long tasks and their Python workers were on a processor, and waited for one that something else had."""

    worked_ms: float
    waited_ms: float


def _processor_time(view: StageView) -> _ProcessorTime | None:
    """The same of the tasks of a stage, about; None if nothing tells how long they waited."""
    totals, load, host = view.stage.totals, load_of(view), host_of(view)
    worked, python = (totals.cpu_ns or 0) / 1e6, python_ms(view) if has_python(view.stage.info) else None
    if not python or load is None or host is None or not view.wall_ms:
        waited = contention.processor_wait_ms(view.app, view.stage)
        return None if waited is None else _ProcessorTime(worked, waited)
    slowdown = max(1.0, load)
    beside_ms = max(0.0, python + min(worked * slowdown, totals.run_ms) - totals.run_ms)
    if (release(view.app.spark_version) or _ONE_THREAD) < _ONE_THREAD:
        beside_ms += totals.run_ms
    of_others = max(1.0, load - beside_ms / view.wall_ms / host.processors)
    worked += python / slowdown
    return _ProcessorTime(worked, min(unmeasured_wait_ms(totals), worked * (of_others - 1)))


def _evidence(view: StageView) -> str:
    """What was measured of the host: the load, and for how much of the time some thread waited, by resource."""
    host, info, load, waits = host_of(view), view.stage.info, load_of(view), []
    if host is None or load is None:
        return ""
    for resource, name in _RESOURCES.items():
        ratio = host.pressure(resource, info.submitted or 0, info.completed or 0)
        if ratio is not None:
            waits.append(f"for {name} {share(ratio)}")
    stalled = f", and some thread waited {', '.join(waits)} of the time" if waits else ""
    return f"; the host had {count(load)} runnable threads for each processor{stalled}"


def _advice(view: StageView) -> str:
    host, master = host_of(view), view.app.properties.get("spark.master", "")
    if host is not None and is_local(view.app.properties) and (view.slots or 0) > host.processors:
        processors = quantity(host.processors, "processor")
        return f"spark.master is {excerpt(master)} on a host with {processors}: run fewer threads."
    return (
        "Look for other programs on the hosts of the executors (load, /proc/pressure, limits of containers), or run "
        "fewer tasks at once there (fewer executors per host, spark.executor.cores, spark.task.cpus)."
    )
