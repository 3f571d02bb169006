"""The smallest change of memory that the event log of an application justifies that died for lack of it.

Which side lacked it decides what changes: the heap of the driver, the heap of tasks, what a container has beside the
heap, or the share of Python workers. The log proves that it needed more than it had, and no upper bound. So the step is
to twice as much: the largest that is never more than twice what was needed. Where Spark says how much it needs, or the
log how much a broadcast collected, that decides.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from spark_app.eventlog.model import memory_settings, pod_memory
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Job
from spark_app.eventlog.model.executor_loss import is_lost, kind_of
from spark_app.eventlog.model.memory_settings import DRIVER_MEMORY, EXECUTOR_MEMORY, size_of
from spark_app.vocabulary.spark_settings import is_local

MIB: Final = 1 << 20
FACTOR: Final = 2
MAX_OF_HOST: Final = 0.75
"""The share of this host's memory that a step may ask for in local mode. Project."""
RESULTS: Final = "spark.driver.maxResultSize"
BROADCAST: Final = "spark.sql.autoBroadcastJoinThreshold"
MARGIN: Final = 1.2
"""How much more than Spark says it needs is asked for: the sizes of its results differ a little from run to run."""
_HEAP: Final = re.compile(r"OutOfMemoryError: (Java heap space|GC overhead limit)|SparkOutOfMemoryError|"
    r"UNABLE_TO_ACQUIRE_MEMORY|OutOfMemoryError: Requested array size|OutOfMemoryError$", re.MULTILINE)  # fmt: skip
_PYTHON: Final = re.compile(
    r"^MemoryError|numpy\S*MemoryError|ArrowMemoryError|Python worker exited unexpectedly", re.MULTILINE
)
_RESULTS: Final = re.compile(r"results of (\d+) tasks \(([\d.]+) (B|KiB|MiB|GiB|TiB)\) is bigger than")
_TOO_LARGE: Final = re.compile(r"Cannot broadcast the table that is larger than")
_LEAST: Final = re.compile(r"(System memory|Executor memory) (\d+) must be at least (\d+)")
_UNITS: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_UNTAKEN: Final = re.compile(r"Exception while getting task result|TaskResultLost")
"""How Spark says that a driver could not take a result; where its heap is full, often without an OutOfMemoryError."""
LARGE_RESULTS: Final = 0.25
"""Of the driver's heap: it holds results as they came and as they are read, beside all else. Project."""
_BROADCAST_JOB: Final = "broadcast exchange ("
"""How Spark begins the tag, before Spark 3.5 the description, of the job that collects a table to broadcast it."""
HELD_BY_BROADCAST: Final = 8
"""The heap that builds a broadcast table, in pages of its hash table. A page is of a power of two bytes and has room
for all rows; while it is filled, the driver holds the collected rows and the page of half the size too, beside what
Spark's share of the heap leaves. Project, by `python -m tests.bench memory_retries`."""
_CONTAINERS: Final = ("k8s", "yarn")
"""Masters that limit a process beside its heap."""

Side = Literal["driver heap", "executor heap", "beside the heap", "Python workers", "results", "broadcast"]


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A change of memory.

    Attributes:
        side: What lacked memory.
        settings: What to change.
        why: What the log says, in a sentence.
    """

    side: Side
    settings: Mapping[str, str]
    why: str


def step(app: Application | None, printed: str = "", host_bytes: int | None = None) -> MemoryChange | None:
    """The change of memory for an application that died; None where nothing says that it lacked memory.

    Args:
        app: By its event log; None where it has left none.
        printed: The end of what it printed: a driver that dies writes no event.
        host_bytes: The memory of this host; None to ask for it.
    """
    settings = {} if app is None else app.properties
    found = _stated(printed) or _found(app, settings, printed)
    host = host_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if found is not None and is_local(settings):
        wanted = size_of(found.settings.get(DRIVER_MEMORY, "0"))
        return None if wanted and wanted > MAX_OF_HOST * host else found
    return found


def _stated(printed: str) -> MemoryChange | None:
    """What Spark says that it needs before it starts: its least heap."""
    least = _LEAST.search(printed)
    if least is None:
        return None
    is_driver = least[1] == "System memory"
    needed = f"{math.ceil(int(least[3]) * MARGIN / MIB)}m"  # a JVM counts less than its -Xmx
    return MemoryChange(
        "driver heap" if is_driver else "executor heap",
        {DRIVER_MEMORY if is_driver else EXECUTOR_MEMORY: needed},
        f"Spark starts with a heap of {int(least[3]) // MIB} MiB at least",
    )


def _found(app: Application | None, settings: Mapping[str, str], printed: str) -> MemoryChange | None:
    """The step by the last failures: of tasks and executors, else of the driver."""
    texts = [] if app is None else list(_failures(app))
    failed = "\n".join([*texts, printed])
    results = _RESULTS.search(failed)
    if results is not None:
        return _for_results(app, results)
    if _TOO_LARGE.search(failed):
        return MemoryChange("broadcast", {BROADCAST: "-1"}, "a table is larger than Spark can broadcast")
    if app is not None:
        lost = [kind for kind in _losses(app) if kind[0] == "out_of_memory"]
        if lost:
            return _for_lost(settings, lost[-1][1])
        if _HEAP.search("\n".join(_task_failures(app))):
            if is_local(settings):
                return _for_driver(app, settings, "tasks ran out of heap")
            return _doubled("executor heap", EXECUTOR_MEMORY, settings, "tasks ran out of heap")
        if _PYTHON.search("\n".join(_task_failures(app))):
            return _for_python(settings)
    if _HEAP.search(failed):
        return _for_driver(app, settings, "the driver ran out of heap")
    if app is not None and _UNTAKEN.search(failed):
        return _for_untaken(app, settings)
    return None


def _failures(app: Application) -> Iterator[str]:
    """Texts of failed jobs, stages and queries."""
    yield from (job.failure for job in app.jobs.values() if job.failure)
    yield from (stage.info.failure for stage in app.stages.values() if stage.info.failure)
    yield from (query.error for query in app.queries.values() if query.error)


def _task_failures(app: Application) -> Iterator[str]:
    for stage in app.stages.values():
        for task in stage.kept:
            if task.info.has_failed:
                yield f"{task.reason.error_type or ''}\n{task.reason.description or task.reason.message or ''}"


def _losses(app: Application) -> Iterator[tuple[str, str]]:
    """The kind and the reason of each lost executor."""
    for executor in app.executors.values():
        if is_lost(app, executor):
            yield kind_of(executor.reason or ""), executor.reason or ""


def _for_lost(settings: Mapping[str, str], reason: str) -> MemoryChange | None:
    """An executor ended for memory: with exit code 52 for its heap, else its container had too little beside that."""
    if re.search(r"code 52\b", reason):
        return _doubled("executor heap", EXECUTOR_MEMORY, settings, "an executor ran out of heap (exit code 52)")
    if not settings.get("spark.master", "").startswith(_CONTAINERS):
        return None  # no matter what killed it, no setting of Spark limits a process beside its heap here
    return _for_container(settings, "the container of an executor reached its limit")


def _for_container(settings: Mapping[str, str], why: str) -> MemoryChange | None:
    """As much more beside the heap as the whole container had."""
    heap, given = size_of(settings.get(EXECUTOR_MEMORY, memory_settings.DEFAULT)), settings.get(pod_memory.OVERHEAD)
    pod = pod_memory.pod_memory(settings)
    if pod is not None:
        overhead, limit = pod.overhead, pod.limit
    elif heap is not None:
        overhead = (size_of(given) if given else None) or max(384 * MIB, heap // 10)
        limit = heap + overhead
    else:
        return None
    more = overhead + (FACTOR - 1) * limit
    return MemoryChange("beside the heap", {pod_memory.OVERHEAD: f"{more // MIB}m"}, f"{why} of {limit // MIB} MiB")


def _for_python(settings: Mapping[str, str]) -> MemoryChange | None:
    """Python workers died: at the limit of their own share, or with their container."""
    if pod_memory.PYTHON in settings:
        return _doubled("Python workers", pod_memory.PYTHON, settings, "a Python worker reached its limit")
    if settings.get("spark.master", "").startswith(_CONTAINERS):
        return _for_container(settings, "a Python worker was killed in a container")
    return None


def _for_results(app: Application | None, found: re.Match[str]) -> MemoryChange:
    """All results of the stage, by those of the tasks that Spark had counted."""
    counted, size = int(found[1]), float(found[2]) * _UNITS[found[3]]
    failed = [stage.info.tasks for stage in app.stages.values() if stage.info.failure] if app else []
    tasks = failed[-1] if failed else counted
    needed = math.ceil(size * max(1.0, tasks / counted) * MARGIN / MIB)
    return MemoryChange(
        "results", {RESULTS: f"{needed}m"}, f"results of {counted} of {tasks} tasks were {found[2]} {found[3]}"
    )


def _for_driver(app: Application | None, settings: Mapping[str, str], why: str) -> MemoryChange | None:
    """Twice the heap of the driver, or as much as the table needs that it was to broadcast when it died."""
    doubled = _doubled("driver heap", DRIVER_MEMORY, settings, why)
    job = None if app is None else _last_job(app)
    if app is None or doubled is None or job is None or not _is_broadcast(job):
        return doubled
    rows = _result_bytes(app, job)
    needed = HELD_BY_BROADCAST * 2 ** math.ceil(math.log2(max(rows, 1)))
    if needed <= (size_of(doubled.settings[DRIVER_MEMORY]) or 0):
        return doubled
    said = f"{doubled.why}, by a broadcast of {round(rows / MIB)} MiB"
    return MemoryChange("driver heap", {DRIVER_MEMORY: f"{needed // MIB}m"}, said)


def _for_untaken(app: Application, settings: Mapping[str, str]) -> MemoryChange | None:
    """A larger heap for a driver that could not take results which are large for it."""
    job, heap = _last_job(app), size_of(settings.get(DRIVER_MEMORY, memory_settings.DEFAULT))
    if job is None or not heap or _result_bytes(app, job) < LARGE_RESULTS * heap:
        return None
    return _for_driver(app, settings, "the driver could not take the results of tasks with a heap")


def _last_job(app: Application) -> Job | None:
    return max(app.jobs.values(), key=lambda each: each.submitted, default=None)


def _is_broadcast(job: Job) -> bool:
    labels = (job.properties.description or "", *(job.properties.tags or "").split(","))
    return any(each.startswith(_BROADCAST_JOB) for each in labels)


def _result_bytes(app: Application, job: Job) -> float:
    """What a job sent to the driver, or would have if all of its tasks had ended."""
    last = app.stages.get(max(job.ran, default=(-1, 0)))
    return 0 if last is None else last.totals.result_bytes * last.info.tasks / max(1, last.completed)


def _doubled(side: Side, name: str, settings: Mapping[str, str], why: str) -> MemoryChange | None:
    now = size_of(settings.get(name, memory_settings.DEFAULT))
    if now is None:
        return None
    return MemoryChange(side, {name: f"{FACTOR * now // MIB}m"}, f"{why} of {now // MIB} MiB")
