"""Cores, slots and running tasks over time, as idle time, core-hours, what-if and comparisons have them."""

from spark_app.eventlog import cost
from spark_app.eventlog.comparison.profile import Wall
from spark_app.eventlog.comparison.wallclock import wall_clock
from spark_app.eventlog.model.executors import Executor
from spark_app.eventlog.model.occupancy import Occupancy, Span, Utilization
from spark_app.eventlog.replay.work import work
from tests.unit.eventlog import log
from tests.unit.eventlog.made import Run, Stage, Task


def occupancy(*tasks: tuple[int, int], cores: int = 2, task_cpus: int = 1, end: int = 10) -> Occupancy:
    """An executor that is there from 2 on, and tasks from when to when."""
    return Occupancy([Executor("1", "h", cores, 2)], [(*task, 1) for task in tasks], (0, end), task_cpus=task_cpus)


def test_gaps_are_the_times_without_a_task() -> None:
    """Overlapping tasks count once, what lies outside the period not at all, and a new executor ends no gap."""
    assert occupancy((3, 6), (4, 5), (8, 20), (-5, 1)).gaps == [(1, 3), (6, 8)]
    assert occupancy().gaps == [(0, 10)]


def test_the_sums_are_those_of_the_period() -> None:
    """Cores and tasks count while they are there."""
    used = occupancy((3, 6), (4, 5), (8, 20)).utilization
    assert used == Utilization(wall_ms=10, core_ms=16, slot_ms=16, task_ms=6, busy_ms=5)
    assert (used.idle_ms, used.slots) == (5, 1.6)


def test_task_time_is_divided_by_running_tasks_or_else_by_slots() -> None:
    """No task time takes longer than itself; without executors nobody knows."""
    assert Utilization(wall_ms=10, core_ms=40, slot_ms=40, task_ms=16, busy_ms=8).wall_of(6) == 3
    assert Utilization(wall_ms=10, core_ms=40, slot_ms=40).wall_of(6) == 1.5
    assert Utilization(wall_ms=10, core_ms=5, slot_ms=5).wall_of(6) == 6
    assert Utilization(wall_ms=10).wall_of(6) is None


def test_means_are_of_equal_parts() -> None:
    """A task that covers half a part counts half in it; nothing is lost or counted twice."""
    spans: list[Span] = [(0, 5, 1), (5, 20, 4), (35, 99, 2)]
    held = Occupancy([], spans, (0, 40), task_cpus=1)
    assert held.means(held.tasks, 4) == [2.5, 4.0, 0.0, 1.0]


def test_a_level_that_does_not_change_has_its_value_in_each_part() -> None:
    """Also at times since the epoch and in parts that are no whole milliseconds."""
    start = 1_795_263_134_589
    held = Occupancy([], [(start, start + 9973, 2)], (start, start + 9973), task_cpus=1)
    assert held.means(held.tasks, 240) == [2] * 240


def test_a_period_without_a_length_is_empty() -> None:
    """An application that ended when it started."""
    held = occupancy((0, 5), end=0)
    assert (held.gaps, held.means(held.cores, 4), held.utilization) == ([], [], Utilization())


def test_cores_that_are_too_few_for_a_task_are_cores_and_no_slots() -> None:
    """Executors of three cores run one task of two each; wall clock, what-if, findings and reports agree on it."""
    stage = Stage("a", 0, 1000, [Task(0, 1000), Task(0, 1000)])
    run = Run(1000, [stage], cores=3, settings={"spark.task.cpus": "2"}, lost_at=1000)
    app = run.application
    held = app.occupancy(app.stages.values(), (app.began or 0, app.last))
    clock, cores = wall_clock(app), cost.spent(app, app.began or 0, app.last)
    replayed = work(app, app.stages.values(), held)
    assert (app.slots, held.utilization.slots, clock.parts[0, 0]) == (2, 2, Wall(work=1000))
    assert replayed is not None
    assert (replayed.cores, replayed.own.ms) == (6, 1000)
    assert cores is not None
    assert cores.core_hours * cost.HOUR_MS == clock.core_ms == held.utilization.core_ms == 6000


def test_a_replaced_executor_gives_no_more_slots_than_there_were() -> None:
    """Six cores of two executors are three slots by division and two in truth, also when one of them is replaced."""
    first, second = [Task(0, 1000), Task(0, 1000), Task(1000, 2000)], [Task(1000, 2000), Task(2000, 3000)]
    run = Run(3000, [Stage("a", 0, 3000, first + second)], cores=3, settings={"spark.task.cpus": "2"}, lost_at=1000)
    lines = run.lines()
    lines[-1:-1] = [log.executor("e3", cores=3, time=run.at + 1000)]
    app = log.application(lines)
    found = work(app, app.stages.values(), app.occupancy(app.stages.values(), (app.began or 0, app.last)))
    assert found is not None
    assert (found.cores, found.own.ms) == (6, 3000)


def test_executors_before_the_settings_of_a_log_have_slots() -> None:
    """In local mode, the log tells of the executor first."""
    lines = [log.executor(cores=4, time=1000), log.environment({"spark.task.cpus": "2"}), log.started(1000)]
    assert log.application([*lines, log.ended(5000)]).slots == 2
