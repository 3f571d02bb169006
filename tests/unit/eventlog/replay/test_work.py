import tracemalloc
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.replay import limitations, what_if
from spark_app.eventlog.replay.work import IDLE_MS, Work, work
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line

BEGAN: Final = 1000
LOGS: Final = Path(__file__).parents[3] / "eventlogs"


def stage(number: int, *durations: int, at: int, slots: int, parents: tuple[int, ...] = ()) -> list[Line]:
    """A stage that begins at some milliseconds after the start, with tasks one after another on the slots."""
    free, tasks = [at] * slots, []
    for place, duration in enumerate(durations):
        start = min(free)
        free[free.index(start)] = start + duration
        times: dict[str, Any] = {"Launch Time": BEGAN + start, "Finish Time": BEGAN + start + duration}
        tasks.append(log.task(100 * number + place, number, **times))
    lines = [
        log.stage(number, tasks=len(durations)),
        *log.starts(tasks),
        *tasks,
        log.stage(number, end=BEGAN + max(free)),
    ]
    for line in (lines[0], lines[-1]):
        line["Stage Info"] |= {"Submission Time": BEGAN + at, "Parent IDs": list(parents)}
    return lines


def replayed(lines: list[Line], *, cores: int, end: int, **properties: str) -> Work | None:
    """The replays of a log with one executor."""
    settings = log.environment(properties)
    app = log.application([settings, log.started(), log.executor(cores=cores), *lines, log.ended(BEGAN + end)])
    stages = app.stages.values()
    return work(app, stages, app.occupancy(stages, (BEGAN, BEGAN + end)))


def durations(found: Work | None) -> dict[int | None, float]:
    """How long each number of cores takes."""
    assert found is not None
    numbers = [round(found.cores * factor) for factor in (0.5, 1, 2) if found.cores * factor >= 1]
    return {cores: what_if.on_cores(found, cores) for cores in (*numbers, None)}


def test_tasks_share_the_slots_and_the_driver_takes_its_time() -> None:
    """Four tasks of a second on two cores, half a second of the driver before and after them."""
    lines = stage(0, 1000, 1000, 1000, 1000, at=500, slots=2)
    assert durations(replayed(lines, cores=2, end=3000)) == {1: 5000, 2: 3000, 4: 2000, None: 2000}


def test_the_longest_task_is_the_least_that_a_stage_takes() -> None:
    """More cores do not help where one task has all the work."""
    lines = stage(0, 100, 4000, 100, at=0, slots=2)
    assert durations(replayed(lines, cores=2, end=4000)) == {1: 4200, 2: 4000, 4: 4000, None: 4000}


def test_a_stage_waits_for_its_parents_and_not_for_the_clock() -> None:
    """On more cores the second stage begins earlier, as its parent ends earlier."""
    lines = [*stage(0, 1000, 1000, at=0, slots=1), *stage(1, 1000, 1000, at=2200, slots=1, parents=(0,))]
    assert durations(replayed(lines, cores=1, end=4200)) == {1: 4200, 2: 2200, None: 2200}


def test_a_stage_waits_for_its_parents_also_where_another_ended_last() -> None:
    """On half of the cores the parent ends after the stage that ended last in truth."""
    other, parent = stage(0, 1050, at=0, slots=1), stage(1, 1000, 1000, at=0, slots=2)
    lines = [*other, *parent, *stage(2, 100, at=1100, slots=1, parents=(1,))]
    assert durations(replayed(lines, cores=4, end=1200)) == {2: 2100, 4: 1200, 8: 1200, None: 1200}


def test_stages_at_the_same_time_share_the_slots() -> None:
    """Two jobs of two threads: neither waits for the other."""
    lines = [*stage(0, 1000, at=0, slots=1), *stage(1, 1000, at=0, slots=1)]
    assert durations(replayed(lines, cores=2, end=1000)) == {1: 2000, 2: 1000, 4: 1000, None: 1000}


def test_a_task_may_take_several_cores() -> None:
    """Four cores are two slots, if each task takes two."""
    lines = stage(0, 1000, 1000, 1000, 1000, at=0, slots=2)
    found = durations(replayed(lines, cores=4, end=2000, **{"spark.task.cpus": "2"}))
    assert found == {2: 4000, 4: 2000, 8: 1000, None: 1000}


def test_the_error_is_that_of_the_same_cores() -> None:
    """An hour in which the slots did nothing although tasks waited is not explained by the replay."""
    slow = stage(0, 1000, 1000, at=0, slots=1)
    found = replayed(slow, cores=2, end=2000)
    assert found is not None
    assert found.error == pytest.approx(-0.5)
    assert limitations.of_replays(found) == ["a replay of the stages and tasks as they were is 50 % too short"]


def test_executors_after_the_end_of_the_period_are_none_of_its_cores() -> None:
    """An application may get more executors for what it does later."""
    lines = [log.executor(cores=2), *stage(0, 1000, 1000, at=0, slots=2), log.executor("2", cores=2, time=BEGAN + 2000)]
    app = log.application([log.environment({}), log.started(), *lines, log.ended(BEGAN + 3000)])
    stages = app.stages.values()
    assert durations(work(app, stages, app.occupancy(stages, (BEGAN, BEGAN + 1000)))) == {
        1: 2000, 2: 1000, 4: 1000, None: 1000,
    }  # fmt: skip


def test_cores_without_end_take_no_memory_without_end() -> None:
    """Slots that could never have a task are left out: a damaged log may name any number of cores."""
    most = 10**6
    tracemalloc.start()
    found = durations(replayed(stage(0, 1000, 1000, at=0, slots=2), cores=most, end=1000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == {most // 2: 1000, most: 1000, 2 * most: 1000, None: 1000}
    assert peak < most


def test_nothing_is_played_without_executors_or_tasks() -> None:
    """Unknown is unknown."""
    assert replayed([], cores=2, end=1000) is None
    assert replayed(stage(0, 1000, at=0, slots=1), cores=0, end=1000) is None


def test_a_time_without_a_task_within_a_stage_stays() -> None:
    """The only slot was gone for a minute: no number of cores makes that shorter, half of them have the work later."""
    before, after = stage(0, *[1000] * 4, at=0, slots=2), stage(0, *[1000] * 4, at=62_000, slots=2)
    later = [
        task | {"Task Info": task["Task Info"] | {"Task ID": task["Task Info"]["Task ID"] + 9}} for task in after[1:-1]
    ]
    tasks = [*before[1:-1], *later]
    lines = [before[0], *tasks, after[-1]]
    found = durations(replayed(lines, cores=2, end=64_000))
    assert found == {1: 68_000, 2: 64_000, 4: 62_000, None: 62_000}


def test_replays_of_recorded_applications_keep_the_time_without_a_task() -> None:
    """On their own cores they are right to a tenth, and on any others they take no less than what needs no core.

    Among them are drivers that sleep between jobs, and applications that wait for executors and lose them.
    """
    recorded = 0
    for log_file in LOGS.glob("*/*.zst"):
        app = reader.read(log_file).app
        held = app.occupancy(app.stages.values(), (app.began or 0, app.ended or app.last))
        found = work(app, app.stages.values(), held)
        if found is None:
            continue
        recorded += 1
        idle = sum(end - start for start, end in held.gaps if end - start > IDLE_MS)
        assert abs(found.error) < 0.1, (log_file, found.error)
        assert min(durations(found).values()) >= idle, (log_file, durations(found), idle)
    assert recorded > 30
