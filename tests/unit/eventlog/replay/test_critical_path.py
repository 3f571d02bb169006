from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.parse.events import StageInfo
from spark_app.eventlog.replay.critical_path import critical_path
from spark_app.eventlog.replay.schedule import Piece, Replayed
from spark_app.eventlog.replay.work import Part, Work
from tests.unit.eventlog import log

Path = list[tuple[int | None, float, float]]


def part(number: int, *tasks: tuple[int, int]) -> Part:
    """A stage with tasks from when to when."""
    stage = StageAttempt(StageInfo(number, 0, "save", len(tasks)), None, 0)
    for began, ended in tasks:
        stage.launched.append(began)
        stage.durations_ms.append(ended - began)
    began, ended = min(each[0] for each in tasks), max(each[1] for each in tasks)
    return Part(Piece(((number, 0), 1), began, ended, (), list(stage.durations_ms)), stage, range(len(tasks)))


def path(*parts: Part, end: int) -> Path:
    """The path as the ids of its stages, None for the driver, with their times."""
    work = Work(log.application([]), parts, [0, 0], 2, 4, 0, 0, end, Replayed(end, {}))
    return [(each.stage.info.id if each.stage else None, each.started, each.ended) for each in critical_path(work)]


def test_stages_one_after_another_are_all_on_it() -> None:
    """With the driver before, between and after them."""
    assert path(part(0, (100, 500)), part(1, (600, 900), (600, 800)), end=1000) == [
        (None, 0, 100), (0, 100, 500), (None, 500, 600), (1, 600, 900), (None, 900, 1000),
    ]  # fmt: skip


def test_of_two_sides_of_a_join_the_longer_one_is_on_it() -> None:
    """The shorter one may take longer without a later end."""
    assert path(part(0, (0, 300)), part(1, (0, 500)), part(2, (500, 700)), end=700) == [(1, 0, 500), (2, 500, 700)]


def test_a_stage_that_waits_for_a_slot_waits_for_the_task_that_has_it() -> None:
    """Of the stage before, which runs on: only as far as the task that ended when the other one could begin."""
    assert path(part(0, (0, 400), (0, 600)), part(1, (400, 900)), end=900) == [(0, 0, 400), (1, 400, 900)]


def test_the_last_task_of_each_stage_is_named() -> None:
    """What the path is about within the stage: when the task was launched that ended last."""
    work = Work(log.application([]), [part(0, (0, 300), (300, 500))], [0], 1, 4, 0, 0, 500, Replayed(500, {}))
    assert [(each.last_launched, each.length_ms) for each in critical_path(work)] == [(300, 500)]


def test_an_application_without_tasks_is_the_driver_alone() -> None:
    """From its start to its end."""
    assert path(end=500) == [(None, 0, 500)]
