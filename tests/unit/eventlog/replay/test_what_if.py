"""Forecasts of changes, of hand-made schedules with known answers."""

from typing import Any, Final

import pytest

from spark_app.eventlog.model.host_load import HostLoad, LoadSample
from spark_app.eventlog.replay.what_if import COMPUTING_SPREAD, Forecast, forecasts, parsed
from spark_app.eventlog.replay.work import work
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line

BEGAN: Final = 1000
FIXED: Final = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "4"}
LOCAL: Final = {"spark.master": "local[2]"}


def task(number: int, stage: int, start: int, milliseconds: int, **metrics: Any) -> Line:
    """A task that runs from some milliseconds after the start on, all of which is run time."""
    times: dict[str, Any] = {"Launch Time": BEGAN + start, "Finish Time": BEGAN + start + milliseconds}
    return log.task(number, stage, **times) | {"Task Metrics": {"Executor Run Time": milliseconds, **metrics}}


def stage(number: int, tasks: list[Line], *, parents: tuple[int, ...] = ()) -> list[Line]:
    """A stage with its tasks."""
    times = [task["Task Info"] for task in tasks]
    start, end = min(each["Launch Time"] for each in times), max(each["Finish Time"] for each in times)
    lines = [log.stage(number, tasks=len(tasks)), *log.starts(tasks), *tasks, log.stage(number, end=end)]
    for line in (lines[0], lines[-1]):
        line["Stage Info"] |= {"Submission Time": start, "Parent IDs": list(parents)}
    return lines


def in_turn(number: int, *durations: int, at: int = 0, slots: int = 2, **metrics: Any) -> list[Line]:
    """Tasks one after another on slots."""
    free, tasks = [at] * slots, []
    for place, duration in enumerate(durations):
        begin = min(free)
        free[free.index(begin)] = begin + duration
        tasks.append(task(100 * number + place, number, begin, duration, **metrics))
    return tasks


def known(
    lines: list[Line], change: str, *, end: int, settings: dict[str, str] | None = None, host: HostLoad | None = None
) -> Forecast:
    """The forecast of a change, of an application with an executor of two cores and one query."""
    begin = [log.environment(settings or {}), log.started(BEGAN), log.executor(cores=2, time=BEGAN)]
    query: dict[str, Any] = {"spark.sql.execution.id": "0"}
    begin += [log.query(0, time=BEGAN), log.job(0, [0, 1], time=BEGAN, **query)]
    app = log.application([*begin, *lines, log.ended(BEGAN + end)])
    app.host_load, stages = host, app.stages.values()
    done = work(app, stages, app.occupancy(stages, (BEGAN, BEGAN + end)))
    assert done is not None
    (found,) = forecasts(done, [parsed(change)])
    return found


def test_twice_the_cores_take_half_of_the_time_of_tasks() -> None:
    """And all of the driver's: one second before the tasks."""
    found = known(stage(0, in_turn(0, *[1000] * 8, at=1000)), "cores=4", end=5000)
    assert (found.ms, found.change_ratio, found.reasons) == (3000, -0.4, [])
    assert found.low_ms is not None
    assert found.high_ms is not None
    assert 2500 < found.low_ms < 3000 < found.high_ms < 3500


def test_the_interval_is_wider_where_tasks_differ_more() -> None:
    """Eight tasks of a second, and eight of a half to one and a half."""
    even, uneven = [1000] * 8, [500, 1500, 600, 1400, 700, 1300, 800, 1200]
    widths = []
    for durations in (even, uneven):
        tasks = in_turn(0, *durations)
        end = max(each["Task Info"]["Finish Time"] for each in tasks) - BEGAN
        found = known(stage(0, tasks), "cores=1", end=end)
        assert found.low_ms is not None
        assert found.high_ms is not None
        widths.append((found.high_ms - found.low_ms) / end)
    assert widths[1] > 2 * widths[0]


def test_as_many_tasks_as_cores_are_as_many_as_the_new_cores() -> None:
    """Spark makes so many of a range: two tasks of two seconds become four of one. If they do not, it takes two."""
    found = known(stage(0, in_turn(0, 2000, 2000)), "cores=4", end=2000)
    assert found.ms == 1000
    assert found.high_ms is not None
    assert found.high_ms >= 2000


def test_partitions_that_somebody_has_set_stay() -> None:
    """With `spark.default.parallelism` the number of cores changes no number of tasks."""
    settings = {"spark.default.parallelism": "2"}
    assert known(stage(0, in_turn(0, 2000, 2000)), "cores=4", end=2000, settings=settings).ms == 2000


def test_executors_have_the_cores_of_the_others() -> None:
    """Two executors of two cores are four cores."""
    assert known(stage(0, in_turn(0, *[1000] * 8)), "executors=2", end=4000).ms == 2000


def test_a_local_master_has_no_executors() -> None:
    """It has threads."""
    found = known(stage(0, in_turn(0, *[1000] * 8)), "executors=2", end=4000, settings=LOCAL)
    assert (found.ms, found.reasons) == (None, ["a local master has no executors: ask for cores"])


def test_executors_of_one_host_are_not_told() -> None:
    """More of them take longer to start."""
    settings = {"spark.master": "local-cluster[1,2,1024]"}
    found = known(stage(0, in_turn(0, *[1000] * 8)), "executors=2", end=4000, settings=settings)
    reason = "all executors of local-cluster share one host, whose processors they also need to start"
    assert (found.ms, found.reasons) == (None, [reason])


def shuffled(**metrics: Any) -> list[Line]:
    """A second of a map task, and four seconds of four tasks behind the shuffle."""
    maps = stage(0, in_turn(0, 1000))
    return [*maps, *stage(1, in_turn(1, *[1000] * 4, at=1000, **metrics), parents=(0,))]


def test_more_partitions_divide_the_work_behind_a_shuffle() -> None:
    """Five tasks of 800 ms on two slots take 2400 ms, where four of 1000 took 2000."""
    assert known(shuffled(), "partitions=5", end=3000, settings=FIXED).ms == 3400


def test_each_task_has_an_overhead() -> None:
    """Of the four tasks, each took 200 ms to deserialise: eight have as much work, and twice as much of that."""
    metrics = {"Executor Run Time": 800, "Executor Deserialize Time": 200}
    assert known(shuffled(**metrics), "partitions=8", end=3000, settings=FIXED).ms == 1000 + 4 * (400 + 200)


def test_partitions_that_adaptive_execution_merges_are_not_known() -> None:
    """Four tasks of two hundred partitions: the setting is only the most that there may be."""
    found = known(shuffled(), "partitions=50", end=3000)
    assert found.ms is None
    assert found.reasons == [
        "adaptive execution merges partitions: spark.sql.shuffle.partitions is only the most that there may be"
    ]


def test_more_memory_saves_at_most_garbage_collection_and_spilling() -> None:
    """A quarter of the time of the tasks; without spilling it is likely that nothing changes."""
    tasks = in_turn(0, *[1000] * 8, **{"JVM GC Time": 250})
    found = known(stage(0, tasks), "memory=4g", end=4000)
    assert found.ms == 4000
    assert found.low_ms is not None
    assert found.low_ms < 3000


def test_less_memory_is_not_known() -> None:
    """No log says what tasks would have done with it."""
    found = known(stage(0, in_turn(0, *[1000] * 8)), "memory=512m", end=4000)
    assert found.reasons == ["the log does not say what tasks do with less memory than 1.0 GiB (spark.executor.memory)"]


def test_without_skew_tasks_take_the_median_or_the_mean() -> None:
    """Three seconds and one of ten on two slots: the median is a second, the mean 3.25."""
    found = known(stage(0, in_turn(0, 1000, 1000, 1000, 10_000)), "without=skew", end=11_000)
    assert found.ms == 2000
    assert found.high_ms is not None
    assert found.high_ms > 6500


def test_a_cause_that_nobody_waited_for_is_not_known() -> None:
    """Spark may not have measured it."""
    found = known(stage(0, in_turn(0, 1000, 1000)), "without=network", end=1000)
    assert found.reasons == ["tasks did not wait for network, or Spark did not measure it"]


def test_executors_that_come_and_go_are_abstained_from() -> None:
    """Nobody knows how many there would be at which time."""
    tasks = stage(0, in_turn(0, *[1000] * 8))
    dynamic = known(tasks, "cores=4", end=4000, settings={"spark.dynamicAllocation.enabled": "true"})
    assert dynamic.reasons == ["executors come and go (spark.dynamicAllocation.enabled is true)"]
    lost = log.executor("2", cores=2, time=BEGAN), log.removed("2", time=BEGAN + 1000, reason="lost")
    assert "1 executor went before the last task had ended" in known([*lost, *tasks], "cores=4", end=4000).reasons


def test_a_contended_host_is_abstained_from() -> None:
    """Deserialising took ten times the processor time, and so did the tasks: something else had the processors."""
    metrics = {"Executor CPU Time": 100_000_000, "Executor Deserialize Time": 100}
    metrics |= {"Executor Deserialize CPU Time": 10_000_000}
    found = known(stage(0, in_turn(0, *[1000] * 8, **metrics)), "cores=1", end=4000, settings=LOCAL)
    assert found.reasons == ["tasks waited 99 % of their time for a processor that something else had"]


def test_more_threads_than_processors_are_abstained_from() -> None:
    """Tasks that compute all the time, and a log that does not say how many processors there are."""
    computing = stage(0, in_turn(0, *[1000] * 8, **{"Executor CPU Time": 1_000_000_000}))
    assert known(computing, "cores=4", end=4000, settings=LOCAL).reasons == [
        "the log does not say how many processors the host has (spark-app observe measures it)"
    ]
    assert known(computing, "cores=4", end=4000, settings=LOCAL, host=HostLoad(2, ())).reasons == [
        "4 tasks at once would need 4.0 processors, and the host has 2, which the driver and the JVM need too"
    ]
    assert known(computing, "cores=4", end=4000, settings=LOCAL, host=HostLoad(8, ())).ms == 2000


def test_a_processor_is_left_to_the_driver_and_the_jvm() -> None:
    """Two computing threads of a host with two processors take turns with the garbage collection."""
    computing = stage(0, in_turn(0, *[1000] * 8, **{"Executor CPU Time": 1_000_000_000}))
    found = known(computing, "cores=4", end=4000, settings=LOCAL, host=HostLoad(4, ()))
    assert found.reasons == [
        "4 tasks at once would need 4.0 processors, and the host has 4, which the driver and the JVM need too"
    ]
    assert known(computing, "cores=4", end=4000, settings=LOCAL, host=HostLoad(5, ())).reasons == []


def test_fewer_tasks_at_once_wait_for_no_processor() -> None:
    """They waited a tenth of their time, and share caches and memory less; at the long end they take what they took."""
    metrics = {"Executor CPU Time": 900_000_000}
    host = HostLoad(2, tuple(LoadSample(BEGAN + ms, 3, {}) for ms in range(0, 4001, 500)))
    found = known(stage(0, in_turn(0, *[1000] * 8, **metrics)), "cores=1", end=4000, settings=LOCAL, host=host)
    assert found.ms == pytest.approx(7200 * (1 - COMPUTING_SPREAD * 0.9 / 2))
    assert found.high_ms is not None
    assert found.high_ms > 8000
    # an executor has a host of its own, of which nothing is known
    assert known(stage(0, in_turn(0, *[1000] * 8, **metrics)), "cores=1", end=4000).ms == 8000


def test_what_computes_differs_more_than_what_waits() -> None:
    """The interval of tasks that compute all the time is wider."""
    widths = []
    for cpu_ns in (0, 1_000_000_000):
        tasks = in_turn(0, *[1000] * 8, **{"Executor CPU Time": cpu_ns})
        found = known(stage(0, tasks), "cores=4", end=4000)
        assert (found.low_ms, found.high_ms) != (None, None)
        widths.append(found.high_ms - found.low_ms)  # type: ignore[operator]
    assert widths[1] > 2 * widths[0]


@pytest.mark.parametrize("text", ["core=8", "cores", "cores=0", "cores=1.5", "memory=8", "without=disk_", "cores=-1"])
def test_what_is_no_change_is_refused(text: str) -> None:
    """With all that there are."""
    with pytest.raises(ValueError, match="none of cores=N"):
        parsed(text)
