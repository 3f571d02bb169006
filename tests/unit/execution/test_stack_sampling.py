"""Which applications of our own are sampled."""

from pathlib import Path

import pytest

from spark_app.execution.stack_sampling import StackSampling, stack_sampling
from spark_app.observe.stack_capture import StackCapture
from spark_app.settings import load_settings
from spark_app.stack_samples import python_sampler
from tests.unit.eventlog import log
from tests.unit.observe.test_stack_capture import write_full


def test_nothing_is_sampled_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor a second time what `spark-app observe --profile` samples: no folder is made, and executors get no option."""
    shared = {"home": tmp_path, "profile_executors": str(tmp_path)}
    off = load_settings().model_copy(update=shared)
    on = off.model_copy(update={"profile": True})
    with stack_sampling(on, print) as sampling:
        assert sampling.executor_options("spark://host:7077")
    with stack_sampling(off, print) as sampling:
        assert not sampling.executor_options("spark://host:7077")
        assert not list(tmp_path.iterdir())
    monkeypatch.setenv(python_sampler.FOLDER, str(tmp_path))
    with stack_sampling(on, print) as sampling:
        assert not sampling.executor_options("spark://host:7077")
        assert not list(tmp_path.iterdir())


def test_a_process_whose_file_is_full_is_named(tmp_path: Path) -> None:
    """As `spark-app observe` does."""
    notes: list[str] = []
    sampling = StackSampling(StackCapture(tmp_path / "stacks", 19), notes.append)
    write_full(tmp_path / "stacks", 7)
    events = tmp_path / "app-1"
    events.write_bytes(b"".join(line + b"\n" for line in log.packed([log.started(), log.ended()])))
    sampling.write(str(events))
    assert "Python process 7 is sampled in part: its file is full" in notes
