"""How long tasks may have waited for a processor."""

from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.model import contention
from spark_app.eventlog.model.host_load import HostLoad
from spark_app.vocabulary.spark_settings import is_local


def largest_slowdown(view: StageView) -> float | None:
    """How much longer computation may have taken than on a processor of its own, at most; None if not measured."""
    measured = [load_of(view), contention.of_deserializing(view.stage.totals)]
    if view.stage.totals.deserialize_cpu_ns < contention.SOME_SLICES_NS:
        measured.append(contention.of_all_deserializing(view.app))
    known = [slowdown for slowdown in measured if slowdown is not None]
    return max(1.0, *known) if known else None


def is_measured(view: StageView) -> bool:
    """Whether the load of the host of all executors was measured during the stage."""
    return load_of(view) is not None


def python_ms(view: StageView) -> int | None:
    """How long Python workers were on a processor or waited for one during the stage; None where nothing measured it.

    `observe` measures those below the driver, which are those of its tasks in local mode.
    """
    host, info = host_of(view), view.stage.info
    if host is None or not is_local(view.app.properties) or info.submitted is None or info.completed is None:
        return None
    return host.python_ms(info.submitted, info.completed)


def host_of(view: StageView) -> HostLoad | None:
    """The host of all executors, where `observe` measured it."""
    return contention.measured_host(view.app)


def load_of(view: StageView) -> float | None:
    """The runnable threads per processor of the host during the stage; None without a sample."""
    return contention.measured_load(view.app, view.stage)
