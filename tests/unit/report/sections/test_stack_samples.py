import datetime

import pytest

from spark_app.report.limits import Limits
from spark_app.report.run_info import RunInfo
from spark_app.report.scope import scope
from spark_app.report.sections.stack_samples import StackSection, stack_samples
from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.stack_profile import StackProfile, profile
from tests.unit.report import made
from tests.unit.report.conftest import Read
from tests.unit.run_records import example_record
from tests.unit.stack_samples.made import TASK, Taken, run

SPLIT = (("slow@job.py:7!", 70), ("quick@job.py:9!", 30), ("rare@job.py:11!", 4))


def profiled(
    *, functions: tuple[tuple[str, int], ...] = SPLIT, driver: list[tuple[int, int]] | None = None
) -> StackProfile:
    """Samples of stages 0, 1 and 2, of which the last has few; and of the driver, so many from a moment on."""
    taken = Taken()
    executor, worker = taken.process(), taken.process("python_worker")
    program = taken.process("python_driver", None)
    for at, times in driver or []:
        taken.add(at, "<module>@job.py:20!", process=program, times=times)
    for function, times in functions:
        taken.add(2050, "main@worker.py:9", "score@job.py:3!", function, process=worker, task=1, times=times)
    taken.add(2550, TASK, "a.Sort.next", process=executor, times=30)
    taken.add(3050, TASK, "a.Sort.next", process=executor, times=6)
    return profile(taken.done(), [run(1, 0, 2000, 2400), run(2, 1, 2500, 2900), run(3, 2, 3000, 3400)])


def section(reading: Read, limits: Limits | None = None) -> StackSection:
    """What the report of an application with two queries of two stages each shows."""
    app = reading(made.large(stages=4, tasks=8, queries=2)).app
    found = stack_samples(scope(app, None), profiled(), limits or Limits())
    assert found is not None
    return found


def test_the_hottest_functions_have_a_share_with_its_error(reading: Read) -> None:
    """Functions of fewer than five samples are left out, but a UDF is named that calls others."""
    hot = section(reading).functions
    assert [(each.function.name, each.time.line, each.time.innermost.samples) for each in hot] == [
        ("slow", 7, 70),
        ("quick", 9, 30),
        ("score", 3, 0),
    ]
    assert [each.share for each in hot] == [pytest.approx(70 / 104), pytest.approx(30 / 104), None]
    assert hot[0].apart == pytest.approx(0.16, abs=0.01)
    assert hot[2].apart is None
    assert (hot[2].total_share, hot[2].time.is_udf) == (1.0, True)


@pytest.mark.parametrize(
    ("is_alone", "seconds", "places"),
    [
        (True, 0.9, {(0, 0): 104, (1, 0): 30, "driver": 8}),
        (True, 0.2, {(0, 0): 104, "driver": 5}),
        (False, 0.9, {(0, 0): 104, (1, 0): 30}),
        (None, 0.9, {(0, 0): 104, (1, 0): 30}),
    ],
)
def test_a_run_has_the_driver_of_its_time(
    reading: Read,
    is_alone: bool | None,  # noqa: FBT001 - as the record has it
    seconds: float,
    places: dict[Place, int],
) -> None:
    """Unless another lasted then, or that is not known, as of a run that was killed; its stages are there."""
    started = datetime.datetime.fromtimestamp(2.0, datetime.UTC)
    record = example_record(started_at=started, seconds=seconds, trace_id=None, is_alone=is_alone)
    app = reading(made.large(stages=4, tasks=8, queries=2)).app
    stacks = profiled(driver=[(1900, 20), (2100, 5), (2300, 3), (3100, 7)])
    found = stack_samples(scope(app, RunInfo(record.folder, record)), stacks, Limits())
    assert found is not None
    assert {row.place: row.part.total.samples for row in found.rows} == places
    whole = stack_samples(scope(app, None), stacks, Limits())
    assert whole is not None
    assert whole.rows[-1].part.total.samples == 35


def test_no_samples_are_no_section(reading: Read) -> None:
    """Nor are samples of threads that only wait."""
    app = reading(made.large(stages=1, tasks=1, queries=1)).app
    taken = Taken()
    taken.process("driver", None)
    taken.add(2050, "io.Queue.take", state="waiting", times=50)
    assert stack_samples(scope(app, None), None, Limits()) is None
    assert stack_samples(scope(app, None), profile(taken.done(), []), Limits()) is None
