"""How much longer the tasks of a stage computed because other programs, or other tasks, had the processors."""

from typing import Final

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt, unmeasured_wait_ms
from spark_app.eventlog.model.host_load import HostLoad
from spark_app.eventlog.model.task_numbers import Totals
from spark_app.vocabulary.spark_settings import is_local

MIN_DESERIALIZE_MS: Final = 100
"""Time of deserialising tasks that says something about the processors of their hosts."""
SOME_SLICES_NS: Final = 10_000_000
"""Tasks that were deserialised in less time on a processor may never have lost it: the kernel's scheduler gives each
thread some milliseconds at a time."""


def measured_host(app: Application) -> HostLoad | None:
    """The load of the host of all executors; None where it was not measured: `observe` measures the driver's host."""
    if is_local(app.properties):
        return app.host_load
    hosts = {executor.host for executor in app.executors.values()}
    return app.host_load if hosts == {app.properties.get("spark.driver.host")} else None


def measured_load(app: Application, stage: StageAttempt) -> float | None:
    """The runnable threads per processor of the host during a stage; None without a sample."""
    info = stage.info
    return None if info.submitted is None or info.completed is None else _load(app, info.submitted, info.completed)


def _load(app: Application, begin: int, end: int) -> float | None:
    host = measured_host(app)
    runnable = None if host is None else host.runnable(begin, end)
    return None if host is None or runnable is None else runnable / host.processors


def of_deserializing(totals: Totals) -> float | None:
    """How much longer it took to deserialise tasks than they had a processor meanwhile."""
    return _over_cpu(totals.deserialize_ms, totals.deserialize_cpu_ns)


def of_all_deserializing(app: Application) -> float | None:
    """The same of the tasks of all stages so far."""
    return _over_cpu(app.deserialize_ms, app.deserialize_cpu_ns)


def _over_cpu(took_ms: float, cpu_ns: int) -> float | None:
    return took_ms / (cpu_ns / 1e6) if cpu_ns else None


def slowdown(app: Application, stage: StageAttempt) -> float | None:
    """How much longer computation took than it would have on a processor of its own; None if it was not measured."""
    if measured_host(app) is not None:
        return measured_load(app, stage)
    totals = stage.totals
    return of_deserializing(totals) if totals.deserialize_ms >= MIN_DESERIALIZE_MS else None


def slowdown_between(app: Application, begin: int, end: int) -> float | None:
    """The same between two times, or of all tasks so far where the load of the host was not measured."""
    if measured_host(app) is not None:
        return _load(app, begin, end)
    return of_all_deserializing(app) if app.deserialize_ms >= MIN_DESERIALIZE_MS else None


def processor_wait_ms(app: Application, stage: StageAttempt) -> float | None:
    """How long the tasks of a stage waited for a processor, about, over all tasks; None if it was not measured."""
    worked, slower = (stage.totals.cpu_ns or 0) / 1e6, slowdown(app, stage)
    if not worked or slower is None:
        return None
    return max(0.0, min(unmeasured_wait_ms(stage.totals), worked * (slower - 1)))
