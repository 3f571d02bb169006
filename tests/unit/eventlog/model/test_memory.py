from typing import Any

import pytest

from spark_app.eventlog.model.memory import MAX_SAMPLES, MemoryHistory, MemorySample
from spark_app.eventlog.parse.events import Peaks
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line

MIB = 2**20


def ended(number: int, *, launched: int, finished: int) -> Line:
    """A task of the stage ends."""
    info: dict[str, Any] = {"Launch Time": launched, "Finish Time": finished}
    return log.task(number, 0, **info)


def reported(heap: int, **others: int) -> Line:
    """What a task reports of its executor, in MiB."""
    peaks = {"JVMHeapMemory": heap, **others}
    return {"Task Executor Metrics": {name: value * MIB for name, value in peaks.items()}}


def samples(*lines: Line) -> list[MemorySample]:
    """What is known of the executor of an application with one stage."""
    begun = [log.started(), log.executor(), log.job(0, [0]), log.stage(0)]
    return log.application([*begun, *lines]).executors["0"].memory.samples


def test_the_highest_reports_of_the_tasks_of_a_stage_count() -> None:
    """Each kind of memory for itself, from the launch of the first to the end of the last task."""
    ends = [ended(0, launched=2200, finished=3000), ended(1, launched=2500, finished=4000)]
    first = reported(100, OnHeapExecutionMemory=7, ProcessTreePythonRSSMemory=50)
    second = reported(80, OnHeapExecutionMemory=9, OffHeapStorageMemory=3)
    (sample,) = samples(ends[0] | first, ends[1] | second)
    assert (sample.started, sample.ended, sample.stage) == (2200, 4000, (0, 0))
    assert sample.peaks == Peaks(100 * MIB, 9 * MIB, 0, 0, 3 * MIB, 50 * MIB)


def test_a_task_that_no_heartbeat_has_seen_tells_nothing() -> None:
    """Spark logs zeros then."""
    assert samples(ended(0, launched=2200, finished=3000) | reported(0)) == []


def test_the_peaks_of_a_stage_are_those_of_its_time() -> None:
    """With `spark.eventLog.logStageExecutorMetrics`, Spark logs them at its end, without a time."""
    end = ended(0, launched=2200, finished=3000)
    task = {key: end[key] for key in ("Stage ID", "Stage Attempt ID", "Task Info")}
    fields = {"Executor ID": "0", "Stage ID": 0, "Stage Attempt ID": 0, "Executor Metrics": {"JVMHeapMemory": MIB}}
    stage = {"Event": "SparkListenerStageExecutorMetrics", **fields}
    (sample,) = samples({"Event": "SparkListenerTaskStart"} | task, end, stage)
    assert (sample.started, sample.ended, sample.peaks.heap) == (2200, 3000, MIB)
    assert samples(stage | {"Executor ID": "driver"}) == []


@pytest.mark.parametrize("stages", [2 * MAX_SAMPLES, 10_000])
def test_a_long_life_is_kept_in_bounded_memory(stages: int) -> None:
    """Neighbours are merged: the whole time and the highest peak, with its stage, stay known."""
    history = MemoryHistory()
    for number in range(stages):
        heap = 900 if number == stages // 2 else 100
        history.add(MemorySample(10 * number, 10 * number + 5, (number, 0), Peaks(heap)))
    assert len(history.samples) < 2 * MAX_SAMPLES
    assert (history.samples[0].started, history.samples[-1].ended) == (0, 10 * stages - 5)
    assert [each.stage for each in history.samples if each.peaks.heap == 900] == [(stages // 2, 0)]
