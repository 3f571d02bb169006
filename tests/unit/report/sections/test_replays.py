from pathlib import Path

from spark_app.eventlog import reader
from spark_app.report import page
from spark_app.report.scope import scope
from spark_app.report.sections.replays import replays
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.report.conftest import Read


def collecting(*, cores: int = 1) -> list[log.Line]:
    """Four tasks of a second one after another, of which each collects garbage for a quarter."""
    tasks = [made.ended_task(number, 0, 2000 + number * 1000, 1000, **{"JVM GC Time": 250}) for number in range(4)]
    lines = [log.started(1000), log.executor(time=1000, cores=cores), log.job(0, [0])]
    return [*lines, made.submitted(0, 2000, 4, "save"), *log.starts(tasks), *tasks, log.ended(6000)]


def test_the_report_shows_what_tasks_waited_for(reading: Read, tmp_path: Path) -> None:
    """With what the application would have taken without."""
    found = replays(scope(reading(collecting()).app, None))
    assert found is not None
    assert [(each.cause, each.without_ms, each.saved_ms) for each in found.blocked_time] == [("gc", 4000, 1000)]
    page.write(reader.read(made.written(tmp_path / "app-1", collecting())), output=tmp_path / "report.html")
    assert "garbage collection" in (tmp_path / "report.html").read_text()


def test_a_replay_that_is_far_off_is_not_shown(reading: Read, tmp_path: Path) -> None:
    """Seven of eight cores had nothing to do although tasks waited: the replay does not know why."""
    found = replays(scope(reading(collecting(cores=8)).app, None))
    assert found is not None
    assert (found.blocked_time, found.remarks) == (
        [], ["a replay of the stages and tasks as they were is 60 % too short"],
    )  # fmt: skip


def test_the_critical_path_is_drawn_and_listed(reading: Read, tmp_path: Path) -> None:
    """A second of the driver, four of the stage, whose last task took one; nothing of it is not on the path."""
    found = replays(scope(reading(collecting()).app, None))
    assert found is not None
    path = found.critical_path
    assert path is not None
    assert (path.length_ms, path.driver_ms, path.total) == (5000, 1000, 2)
    assert [(step.kind, step.after_ms, step.duration_ms, step.last_task_ms, step.job) for step in path.steps] == [
        ("driver", 0, 1000, None, None), ("stage", 1000, 4000, 1000, 0),
    ]  # fmt: skip
    page.write(reader.read(made.written(tmp_path / "app-1", collecting())), output=tmp_path / "report.html")
    drawn = (tmp_path / "report.html").read_text()
    assert '<rect class="stage" x="200.0" width="800.0"' in drawn
    assert '<rect class="query" x="800.0" width="200.0"' in drawn
