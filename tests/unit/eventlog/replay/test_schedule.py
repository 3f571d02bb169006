import pytest

from spark_app.eventlog.replay import schedule
from spark_app.eventlog.replay.schedule import Piece, replay


def piece(number: int, *durations: float, began: float, ended: float, parents: tuple[int, ...] = ()) -> Piece:
    """A stage that began and ended so long after the start."""
    return Piece(((number, 0), 0), began, ended, tuple((parent, 0) for parent in parents), durations)


def test_tasks_take_the_slots_in_turn() -> None:
    """Five tasks of a second on two slots take three seconds, and the driver half a second before and after."""
    work = [piece(0, *[1000] * 5, began=500, ended=3500)]
    assert replay(work, [0, 0], 0, 4000).ms == 4000


def test_the_driver_may_be_slower() -> None:
    """Its second takes two, and the tasks as long as before."""
    work = [piece(0, *[1000] * 5, began=500, ended=3500)]
    assert replay(work, [0, 0], 0, 4000, driver=2).ms == 5000


def test_a_stage_waits_for_its_parents() -> None:
    """A join begins after the longer one of its two sides, which a faster side does not change."""
    sides = [piece(0, 3000, began=0, ended=3000), piece(1, 1000, began=0, ended=1000)]
    join = piece(2, 500, began=3000, ended=3500, parents=(0, 1))
    found = replay([*sides, join], [0, 0], 0, 3500)
    assert found.ms == 3500
    assert found.ends == {((0, 0), 0): 3000, ((1, 0), 0): 1000, ((2, 0), 0): 3500}


def test_a_slot_is_there_from_its_executor_on() -> None:
    """The second executor comes after two seconds, when the first one has run two of the three tasks."""
    work = [piece(0, 1000, 1000, 1000, began=0, ended=3000)]
    assert replay(work, [0, 2000], 0, 3000).ms == 3000


def test_one_slot_for_each_task_takes_as_long_as_the_longest() -> None:
    """There is no stage without its longest task."""
    assert replay([piece(0, 10, 4000, 10, began=0, ended=4020)], None, 0, 4020).ms == 4000


def test_very_many_tasks_are_spread_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as in turn to a hundredth, also where one task takes much longer than all others."""
    durations = [100 + number * 37 % 100 for number in range(4000)]
    durations[10] = 200_000
    work = [piece(0, *durations, began=0, ended=1)]
    exact = replay(work, [0.0] * 4, 0, 1).ms
    monkeypatch.setattr(schedule, "MAX_IN_TURN", 500)
    assert replay(work, [0.0] * 4, 0, 1).ms == pytest.approx(exact, rel=0.01)
