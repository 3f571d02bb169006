from typing import Any, Final

from spark_app.eventlog.replay.blocked_time import BlockedTime, blocked_time
from spark_app.eventlog.replay.work import work
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line

BEGAN: Final = 1000
Metrics = dict[str, Any]


def task(number: int, start: int, milliseconds: int, **metrics: Any) -> Line:
    """A task that runs from some milliseconds after the start on, all of which is run time."""
    times: dict[str, Any] = {"Launch Time": BEGAN + start, "Finish Time": BEGAN + start + milliseconds}
    line = log.task(number, 0, **times)
    return line | {"Task Metrics": {"Executor Run Time": milliseconds, **metrics}}


def causes(tasks: list[Line], *, end: int, slots: int = 1, accumulables: tuple[Line, ...] = ()) -> dict[str, Any]:
    """What is saved without each cause, of a stage that begins with the application."""
    lines = [log.stage(0, tasks=len(tasks)), *tasks, log.stage(0, end=BEGAN + end)]
    for line in (lines[0], lines[-1]):
        line["Stage Info"] |= {"Submission Time": BEGAN, "Accumulables": list(accumulables)}
    app = log.application(
        [log.started(), log.executor(cores=slots), log.job(0, [0], time=BEGAN), *lines, log.ended(BEGAN + end)]
    )
    stages = app.stages.values()
    done = work(app, stages, app.occupancy(stages, (BEGAN, BEGAN + end)))
    assert done is not None
    return {each.cause: each for each in blocked_time(done)}


def saved(found: dict[str, BlockedTime]) -> dict[str, float]:
    """The milliseconds that are saved without each cause."""
    return {cause: round(each.saved_ms) for cause, each in found.items()}


def fetched(milliseconds: int) -> Metrics:
    """A task waited so long for blocks of a shuffle."""
    return {"Shuffle Read Metrics": {"Fetch Wait Time": milliseconds}}


def test_a_wait_of_every_task_is_saved() -> None:
    """Two tasks on one slot, each of which waited for 400 of its 1000 ms."""
    found = causes([task(0, 0, 1000, **fetched(400)), task(1, 1000, 1000, **fetched(400))], end=2000)
    assert found["network"] == BlockedTime("network", 800, 1200, 800, 0.4)
    assert list(found) == ["network"]


def test_a_wait_that_another_task_hides_saves_nothing() -> None:
    """The task that waited ended before the other one, which did not."""
    found = causes([task(0, 0, 1000, **fetched(900)), task(1, 0, 2000)], end=2000, slots=2)
    assert (found["network"].task_ms, found["network"].saved_ms) == (900, 0)


def test_the_schedule_is_made_anew() -> None:
    """Without its wait the first task ends at 100 ms, and its slot takes the third: 2000 + 1000, not 2 x 1450 - 450."""
    tasks = [task(0, 0, 1000, **fetched(900)), task(1, 0, 2000), task(2, 1000, 1900)]
    assert saved(causes(tasks, end=2900, slots=2)) == {"network": 900, "skew": 0}


def test_each_cause_has_its_own_wait() -> None:
    """Garbage collection, writing of shuffle files (in nanoseconds), deserialising, and the scheduler."""
    times = {"JVM GC Time": 100, "Executor Run Time": 600, "Executor Deserialize Time": 250}
    wrote = {"Shuffle Write Metrics": {"Shuffle Write Time": 50_000_000}}
    assert saved(causes([task(0, 0, 1000, **times, **wrote)], end=1000)) == {
        "deserializing": 250, "scheduling": 150, "gc": 100, "disk": 50,
    }  # fmt: skip


def test_skew_is_what_tasks_take_beyond_the_median() -> None:
    """Three tasks of a second beside one of five, on four slots: four seconds."""
    tasks = [task(number, 0, 1000) for number in range(3)]
    assert saved(causes([*tasks, task(3, 0, 5000)], end=5000, slots=4)) == {"skew": 4000}


def test_python_takes_its_share_of_each_task() -> None:
    """Spark sums it over the stage: of 3000 ms of tasks 1500 were in Python, half of each."""
    accumulables = ({"ID": 7, "Name": "time to run Python workers", "Value": "1500"},)
    tasks = [task(0, 0, 1000), task(1, 0, 2000)]
    assert saved(causes(tasks, end=2000, slots=2, accumulables=accumulables)) == {"python": 1000, "skew": 500}


def test_a_cause_that_nothing_tells_of_is_left_out() -> None:
    """A zero would be a figure that nobody has measured."""
    assert causes([task(0, 0, 1000)], end=1000) == {}


def test_a_task_without_metrics_keeps_its_time() -> None:
    """As one that was lost with its executor; the others lose their own waits."""
    lost = {key: value for key, value in task(0, 0, 1000).items() if key != "Task Metrics"}
    found = causes([lost, task(1, 1000, 1000, **fetched(500))], end=2000)
    assert saved(found) == {"network": 500}
