"""How long the tasks of a stage waited for something that neither Spark nor a busy host explains."""

from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.diagnoses import processors
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.model.operators import has_python

MARGIN: Final = 4.0
"""How many times its slowdown a host may delay tasks where it is starved or was not measured: the scheduler favours
what computes for a short time, as deserialising does, and a program of another priority has another share."""


@dataclass(frozen=True, slots=True)
class OutsideWait:
    """A wait that is most of the run time of the attempts of tasks that succeeded, summed over these.

    Attributes:
        run_ms: Their run time.
        worked_ms: Of that, the time on a processor, with that of Python workers.
        least_ms, usual_ms, most_ms: The wait if the host delayed them as much as it may have, as much as others of
            their threads, and not at all.
    """

    run_ms: float
    worked_ms: float
    least_ms: float
    usual_ms: float
    most_ms: float


def outside_wait(view: StageView) -> OutsideWait | None:
    """The wait of a stage; None where it is less than most of the run time, or the log does not tell."""
    totals, wasted, python_ms = view.stage.totals, view.stage.wasted, _python_ms(view)
    if python_ms is None or totals.cpu_ns is None:
        return None
    run_ms = totals.run_ms - wasted.run_ms
    worked = (totals.cpu_ns - (wasted.cpu_ns or 0)) / 1e6
    known = worked + (totals.gc_ms - wasted.gc_ms) + (totals.shuffle_wait_ms - wasted.shuffle_wait_ms)
    most = run_ms - known - _transfer_ms(view) - python_ms
    least_of_all = view.limits.external_wait_ratio * run_ms
    slowdown = None if most <= 0 or most < least_of_all else processors.largest_slowdown(view)
    if slowdown is None:
        return None
    is_calm = processors.is_measured(view) and slowdown < 1 / view.limits.cpu_unmeasured_ratio
    least = most - worked * (slowdown * (1 if is_calm else MARGIN) - 1)
    if least <= 0 or least < least_of_all:
        return None
    return OutsideWait(run_ms, worked + python_ms, least, most - worked * (slowdown - 1), most)


def _python_ms(view: StageView) -> float | None:
    """How long Python workers of the stage were on a processor or waited for one; 0 without any, None if unknown."""
    return processors.python_ms(view) if has_python(view.stage.info) else 0.0


def _transfer_ms(view: StageView) -> float:
    """How long a disk may take for what the tasks read, wrote and spilled, in milliseconds."""
    totals = view.stage.totals
    moved = totals.input_bytes + totals.output_bytes + totals.shuffle_read_bytes + totals.shuffle_write_bytes
    return (moved + 2 * totals.disk_spilled) * 1000 / view.limits.disk_bytes_per_second
