from pathlib import Path
from typing import Any

from spark_app.eventlog.reader import read
from spark_app.report.scope import scope
from spark_app.report.sections.memory import Memory, memory
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line
from tests.unit.report.conftest import Read

MIB = 2**20
RECORDED = Path(__file__).parents[3] / "eventlogs"


def recorded(name: str) -> Memory:
    """The memory of a recorded application."""
    return memory(scope(read(RECORDED / name).app, None))


def of(reading: Read, *lines: Line) -> Memory:
    """The memory of an application with two executors of 1 GiB, of which one goes."""
    settings = log.environment({"spark.master": "spark://host:7077", "spark.executor.memory": "1g"})
    begun = [
        log.started(1000),
        settings,
        log.executor("0", time=1000),
        log.executor("1", time=3000),
        log.job(0, [0, 1]),
    ]
    lost = log.removed("1", time=7000, reason="idle")
    return memory(scope(reading([*begun, log.stage(0), log.stage(1), *lines, lost, log.ended(11_000)]).app, None))


def ended(stage: int, executor: str, launched: int, finished: int, **peaks: int) -> Line:
    """A task that reports the memory of its executor, in MiB."""
    info: dict[str, Any] = {"Executor ID": executor, "Launch Time": launched, "Finish Time": finished}
    end = log.task(int(executor), stage, **info)
    return end | {"Task Executor Metrics": {name: value * MIB for name, value in peaks.items()}}


def test_a_recorded_application_shows_its_heap_below_the_limit() -> None:
    """Two executors of 512 MiB, whose heartbeats saw tasks of two stages; nothing was off the heap or in Python."""
    shown = recorded("clusters/excluded.zst")
    (chart,) = shown.charts
    assert shown.highest
    assert (shown.limit, shown.highest.sample.peaks.heap < 512 * MIB) == (512 * MIB, True)
    assert (chart.title, chart.high, chart.limit) == ("Heap", 512 * MIB, (16, "512.0 MiB"))
    assert [series.name for series in chart.series] == ["used", "storage"]


def test_a_recorded_application_of_short_tasks_shows_no_memory() -> None:
    """No heartbeat has looked: zeros of the log are not drawn."""
    shown = recorded("clusters/dynamic-allocation.zst")
    assert (shown.highest, shown.charts) == (None, [])


def test_a_chart_shows_the_highest_executor_of_each_time(reading: Read) -> None:
    """And nothing between stages of which nothing was reported."""
    first = [ended(0, "0", 2200, 4000, JVMHeapMemory=100), ended(0, "1", 3000, 4000, JVMHeapMemory=300)]
    shown = of(reading, *first, ended(1, "0", 8000, 9000, JVMHeapMemory=200))
    (chart,) = shown.charts
    assert chart.series[0].path.count("M") == 2
    assert chart.series[0].last == 200 * MIB
    assert shown.highest
    assert (shown.highest.executor.id, shown.highest.sample.stage) == ("1", (0, 0))


def test_each_kind_of_memory_that_was_used_is_drawn(reading: Read) -> None:
    """Only the heap has the limit of the heap."""
    used = {"JVMHeapMemory": 100, "OnHeapExecutionMemory": 20, "OffHeapExecutionMemory": 9}
    shown = of(reading, ended(0, "0", 2200, 4000, **used, ProcessTreePythonRSSMemory=70))
    drawn = {chart.title: ([series.name for series in chart.series], chart.limit is None) for chart in shown.charts}
    assert drawn == {
        "Heap": (["used", "execution"], False),
        "Off-heap memory": (["execution"], True),
        "Python workers": (["resident"], True),
    }


def test_a_time_without_python_workers_has_no_line(reading: Read) -> None:
    """Spark logs 0 where it has not looked, too."""
    with_python = ended(1, "0", 8000, 9000, JVMHeapMemory=200, ProcessTreePythonRSSMemory=70)
    (heap, python) = of(reading, ended(0, "0", 2200, 4000, JVMHeapMemory=100), with_python).charts
    assert [series.path.count("M") for series in (heap.series[0], python.series[0])] == [2, 1]
    assert python.series[0].path.startswith("M700 ")


def test_a_lane_shows_when_an_executor_was_there(reading: Read) -> None:
    """To its end, or to that of the application; its heap in relation to the limit."""
    lines = [
        log.started(1000),
        log.executor("0", time=1000),
        log.executor("1", time=3500),
        log.job(0, [0]),
        log.stage(0),
    ]
    tasks = [ended(0, "0", 2200, 4000, JVMHeapMemory=512)]
    app = reading([*lines, *tasks, log.removed("1", time=8500, reason="idle"), log.ended(11_000)]).app
    shown = memory(scope(app, None))
    lanes = [shown.lane(executor) for executor in app.executors.values()]
    assert [(lane.left, lane.width) for lane in lanes] == [(0, 1000), (250, 500)]
    assert [bool(lane.heap) for lane in lanes] == [True, False]
