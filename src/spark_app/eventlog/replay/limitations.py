"""Why a replay of a log does not tell how long an application would have taken otherwise."""

from collections.abc import Iterator, Sequence
from typing import Final

from spark_app.eventlog.model import contention
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.operators import has_python
from spark_app.eventlog.replay.work import Work
from spark_app.formatting import quantity, share
from spark_app.vocabulary.spark_settings import is_local

MAX_ERROR: Final = 0.25
"""Where the replay on the slots that there were is further off than this share, no other one is shown."""
MAX_CONTENTION: Final = 0.2
"""Above this share of their run time tasks waited for a processor that something else had."""
LATE_MS: Final = 30_000
"""An executor that comes so long after the first task is not one that only started a little later."""
DYNAMIC: Final = "spark.dynamicAllocation.enabled"


def of_replays(work: Work) -> list[str]:
    """Why no replay of a log is to be believed; empty if it is."""
    if not work.app.is_whole:
        return ["the log lacks jobs or tasks"]
    if abs(work.error) > MAX_ERROR:
        percent, side = round(abs(work.error) * 100), "long" if work.error > 0 else "short"
        return [f"a replay of the stages and tasks as they were is {percent} % too {side}"]
    return []


def of_changes(work: Work) -> list[str]:
    """Why a replay does not tell what a change of the application would do; empty if it does."""
    return [*of_replays(work), *_executors(work), *_contention(work)]


def _executors(work: Work) -> Iterator[str]:
    """Executors come and go: how many there would be at which time is not known."""
    first = min(part.piece.began for part in work.parts)
    last = max(part.piece.ended for part in work.parts)
    own = work.app.executors.values()
    gone = sum(each.removed is not None and work.start <= each.removed < last for each in own)
    late = sum(first + LATE_MS < each.added < last for each in own)
    if work.app.properties.get(DYNAMIC, "false").strip().lower() == "true":
        yield f"executors come and go ({DYNAMIC} is true)"
    elif gone:
        yield f"{quantity(gone, 'executor')} went before the last task had ended"
    elif late:
        yield f"{quantity(late, 'executor')} came while tasks ran"


def _contention(work: Work) -> Iterator[str]:
    """Something else had the processors: how much of them other tasks would get is not known."""
    ratio = contention_ratio(work)
    if ratio > MAX_CONTENTION:
        yield f"tasks waited {share(ratio)} of their time for a processor that something else had"


def contention_ratio(work: Work) -> float:
    """The share of their time in which tasks waited for a processor that something else had, about."""
    waited, share_lost = 0.0, 1 - 1 / slowdown(work)
    for stage in stages(work):
        totals = stage.totals
        waited += contention.processor_wait_ms(work.app, stage) or 0.0
        waited += max(0.0, totals.deserialize_ms - totals.deserialize_cpu_ns / 1e6) if totals.deserialize_cpu_ns else 0
        waited += (_python_ms(stage, work) or 0) * share_lost if has_python(stage.info) else 0  # it counts waits, too
    took = sum(sum(part.piece.durations) for part in work.parts)
    return min(1.0, waited / took) if took else 0.0


def slowdown(work: Work) -> float:
    """How much longer computation took than on a processor of its own, over all the time; 1 if not measured."""
    host, own = contention.measured_host(work.app), [stage.totals for stage in stages(work)]
    if host is not None:
        return max(1.0, (host.runnable(round(work.start), round(work.end)) or 0.0) / host.processors)
    took, cpu_ms = sum(each.deserialize_ms for each in own), sum(each.deserialize_cpu_ns for each in own) / 1e6
    return max(1.0, took / cpu_ms) if cpu_ms and took >= contention.MIN_DESERIALIZE_MS else 1.0


def of_processors(work: Work, cores: int) -> Iterator[str]:
    """Threads of a local master beyond the processors of its host would take turns with each other.

    So would as many threads as processors: garbage collection, the compiler and the driver need one at times.
    """
    busy = processors_per_task(stages(work), work)
    if not is_local(work.app.properties) or cores <= work.cores:
        return
    host = contention.measured_host(work.app)
    if busy is None:
        yield "the log does not say whether Python functions compute or wait, so that more threads may take turns"
    elif host is None and cores * busy > 1:
        yield "the log does not say how many processors the host has (spark-app observe measures it)"
    elif host is not None and cores * busy > max(1, host.processors - 1):
        needed = f"{cores} tasks at once would need {cores * busy:.1f} processors"
        yield f"{needed}, and the host has {host.processors}, which the driver and the JVM need too"


def used_ratio(work: Work) -> float:
    """The share of the processors of its host that a local master had while all of its cores were busy; at most 1.

    It is that of a task where nobody measured the host, and 1 where the log does not tell what Python functions do.
    """
    busy, host = processors_per_task(stages(work), work), contention.measured_host(work.app)
    if busy is None:
        return 1.0
    return min(1.0, busy if host is None else work.cores * busy / host.processors)


def processors_per_task(own: Sequence[StageAttempt], work: Work) -> float | None:
    """How many processors a running task had on average; None where the log does not tell."""
    cpu_ms, ran = 0.0, 0
    for stage in own:
        cpu_ms += (stage.totals.cpu_ns or 0) / 1e6
        ran += stage.totals.run_ms
        if has_python(stage.info):
            python_ms = _python_ms(stage, work)
            if python_ms is None:
                return None
            cpu_ms += python_ms
    return cpu_ms / ran if ran else 0.0


def processor_wait_ratio(work: Work, stage: StageAttempt) -> float:
    """The share of their time in which tasks of a stage waited for a processor, about; 0 if it was not measured."""
    took = sum(stage.durations_ms)
    return min(1.0, (contention.processor_wait_ms(work.app, stage) or 0.0) / took) if took else 0.0


def _python_ms(stage: StageAttempt, work: Work) -> int | None:
    host, info = contention.measured_host(work.app), stage.info
    if host is None or info.submitted is None or info.completed is None:
        return None
    return host.python_ms(info.submitted, info.completed)


def stages(work: Work) -> list[StageAttempt]:
    """The stage attempts of some work, each of them once."""
    return list({id(part.stage): part.stage for part in work.parts}.values())
