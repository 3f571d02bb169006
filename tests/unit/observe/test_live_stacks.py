"""The stage of samples of the last seconds: by their tasks, and by the only stage that ran; else it is not known."""

import json
import time
from pathlib import Path
from typing import Final

import pytest

from spark_app.observe import live_stacks
from spark_app.observe.live_stacks import LiveStacks
from spark_app.report.sections.now import RunningStage
from spark_app.report.sections.stacks_now import Window
from spark_app.stack_samples.attribution import Place
from tests.unit.eventlog import log

NOW: Final = 1_000_000_000
"""In milliseconds since the epoch."""
LAUNCH: Final = "token-1"
BEGUN: Final = [log.started(), log.executor()]


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveStacks:
    """A worker of the JVM 1 in local mode has been sampled three times in task 7, once long before."""
    monkeypatch.setattr(live_stacks, "LOOK_SECONDS", 0)
    monkeypatch.setattr(live_stacks, "REST", 0)
    monkeypatch.setattr(time, "time", lambda: NOW / 1000)
    (tmp_path / "repository" / "x_1").mkdir(parents=True)
    (tmp_path / "repository" / "x_1" / "x.jfr").touch()
    (tmp_path / "python").mkdir()
    rows = [
        ["process", "python_worker", 9, 1, "host", 10.0, 1000, None, "/srv/me", "job.py", [], "/usr"],
        ["frame", "job.py", "hot", 2],
        ["stack", 0],
        *(["sample", NOW - ago, 5, 0, "running", 7, 1.0] for ago in (60_000, 5000, 4000, 3000, 500)),
    ]
    (tmp_path / "python" / "9-1.stacks").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return LiveStacks(tmp_path, 10.0)


def stage(number: int, since: int) -> RunningStage:
    """A stage that the driver says runs."""
    return RunningStage(number, 0, "count at job.py:7", since, done=0, running=1, total=2)


def places(window: Window | None) -> dict[Place, int]:
    """The samples of a window by their place."""
    assert window is not None
    return {place: part.total.samples for place, part in window.profile.parts.items()}


def task_started(number: int, of_stage: int) -> bytes:
    """A line of the log."""
    info = {"Task ID": number, "Launch Time": NOW - 9000, "Executor ID": "driver"}
    line = {"Event": "SparkListenerTaskStart", "Stage ID": of_stage, "Stage Attempt ID": 0, "Task Info": info}
    return json.dumps(line, separators=(",", ":")).encode()


def test_samples_are_of_the_only_stage_that_the_driver_says_runs(stacks: LiveStacks) -> None:
    """Those of before the window, and those that other processes may not have written yet, are not among them."""
    window = stacks.window(log.application(BEGUN), LAUNCH, [stage(3, NOW - 6000)])
    assert places(window) == {(3, 0): 3}
    assert window is not None
    assert (window.begin, window.end) == (NOW - 11_000, NOW - 1000)


def test_a_stage_that_began_later_has_no_earlier_sample(stacks: LiveStacks) -> None:
    """Of what ran before it, nothing is known."""
    window = stacks.window(log.application(BEGUN), LAUNCH, [stage(3, NOW - 4500)])
    assert places(window) == {(3, 0): 2, "unknown": 1}


def test_of_several_stages_at_once_the_task_tells_which(stacks: LiveStacks) -> None:
    """Where the log has it; without it, nothing is guessed."""
    app, both = log.application(BEGUN), [stage(3, NOW - 6000), stage(4, NOW - 6000)]
    assert places(stacks.window(app, LAUNCH, both)) == {"unknown": 3}
    stacks.take(task_started(7, 4))
    assert places(stacks.window(app, LAUNCH, both)) == {(4, 0): 3}


def test_a_stage_that_has_ended_ran_until_then(stacks: LiveStacks) -> None:
    """By the log, or since the driver does not name it any more: what both may have done is of neither."""
    app = log.application([*BEGUN, log.stage(2, end=NOW - 3500)])
    assert places(stacks.window(app, LAUNCH, [stage(3, NOW - 6000)])) == {(3, 0): 1, "unknown": 2}
    stacks.forget()
    app = log.application(BEGUN)
    stacks.window(app, LAUNCH, [stage(3, NOW - 6000), stage(4, NOW - 6000)])
    assert places(stacks.window(app, LAUNCH, [stage(3, NOW - 6000)])) == {"unknown": 3}


def test_without_an_answer_of_the_driver_other_stages_may_run(stacks: LiveStacks) -> None:
    """The log has a stage without an end, but may have none of others yet."""
    app = log.application([*BEGUN, log.stage(3, end=None)])
    assert places(stacks.window(app, LAUNCH, [])) == {"unknown": 3}


def test_an_application_that_has_ended_does_nothing(stacks: LiveStacks) -> None:
    """As one of another launcher, of which no process is known."""
    assert stacks.window(log.application([*BEGUN, log.ended(NOW)]), LAUNCH, []) is None
    assert stacks.window(log.application(BEGUN), "", []) is None


def test_looks_are_rare(stacks: LiveStacks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two, the last window is shown, unless other stages run; and a look is followed by a rest of its cost."""
    app, clock = log.application(BEGUN), iter([100.0] * 40)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(live_stacks, "LOOK_SECONDS", 2.0)
    first = stacks.window(app, LAUNCH, [stage(3, NOW - 6000)])
    assert stacks.window(app, LAUNCH, [stage(3, NOW - 6000)]) is first
    second = stacks.window(app, LAUNCH, [stage(4, NOW - 6000)])
    assert second is not first
    monkeypatch.setattr(live_stacks, "REST", 1e9)
    third = stacks.window(app, LAUNCH, [stage(5, NOW - 6000)])
    assert stacks.window(app, LAUNCH, [stage(6, NOW - 6000)]) is third
