import os
import time
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_app.errors import ConfigError, InputError, SparkAppError
from spark_app.execution import streams
from spark_app.execution.run import Job
from spark_app.execution.streams import joined, session_properties
from spark_app.execution.supervisor import StopCondition, Supervisor
from spark_app.observe import retention
from spark_app.runs.stream_status import StreamStatus
from spark_app.settings import load_settings
from spark_app.vocabulary.names import StreamState
from tests.declared import pipeline
from tests.polling import poll_until
from tests.unit.watching import Watching


def test_a_failure_names_all_queries_that_failed() -> None:
    """The exit code is that of the first; one failure stays what it is."""
    first, second, third = InputError("streaming.a: gone"), ConfigError("streaming.b: wrong"), ValueError("x\n  at y")
    failure = joined([first, second, third])
    assert str(failure) == "3 queries failed: streaming.a: gone; streaming.b: wrong; ValueError: x"
    assert (type(failure), failure.__cause__) == (InputError, first)
    assert type(joined([third, first])) is SparkAppError
    assert joined([third]) is third
    java = InputError("Java ended in the middle of the work")
    assert str(joined([java, java, second])) == f"3 queries failed: {java}; {second}"


def test_what_has_expired_is_deleted_while_queries_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only when they end, which may be in months; and it is said."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    monkeypatch.setattr(streams, "PRUNE_SECONDS", 0.01)
    settings, listener = load_settings(), Watching()
    log, lock = settings.logs_path / "spark-20240101T010203Z-1.jsonl", settings.reports_path / retention.LOCK
    for file in (log, lock):
        file.parent.mkdir()
        file.touch()
        os.utime(file, (0, 0))
    with streams.pruned_daily(settings, listener):
        poll_until(lambda: bool(listener.notes), "the deletion")
    assert (len(listener.notes), log.exists()) == (1, False)
    assert listener.notes[0].startswith("deleted 1 Spark log (0 B)")


@pytest.mark.parametrize("folder", ["checkpoints", "file:///c", "hdfs://n/c", "s3a://b/c"])
def test_only_local_checkpoints_are_renamed_without_the_file_context(
    monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """A rename of HDFS replaces nothing, so that a repeated micro-batch would fail; a local one is atomic."""
    monkeypatch.setenv("SPARK_APP_CHECKPOINTS", folder)
    properties = session_properties(load_settings())
    is_here = folder in ("checkpoints", "file:///c")
    assert ("spark.sql.streaming.checkpointFileManagerClass" in properties) is is_here
    assert properties["spark.sql.shuffle.partitions"] == "4"


def test_the_events_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the names of the others; those follow in their order, each when the one before has begun."""
    started: list[str] = []

    class Begun(Supervisor):
        has_begun = True

        def run(self) -> None:
            started.append(self.name)

    monkeypatch.setattr(streams, "QueryListener", lambda _spark, _hear: BytesIO())
    monkeypatch.setattr(streams, "Supervisor", Begun)
    pipelines = ["activity", "balances", "events", "sessions"]
    jobs = [Job(f"streaming.{name}", pipeline(starts_first=name == "events"), None) for name in pipelines]
    application: Any = SimpleNamespace(spark=None, settings=load_settings())
    assert streams.run_queries(application, jobs, StopCondition(), Watching()) == []
    assert [name.removeprefix("streaming.") for name in started] == ["events", "activity", "balances", "sessions"]


@pytest.mark.parametrize(
    ("state", "batch_ms", "seconds_ago", "has_time"),
    [
        ("running", 4_000, 1, True),
        ("running", 6_000, 1, False),
        ("running", 4_000, 11, False),
        ("running", None, 1, False),
        ("idle", 6_000, 11, True),
        ("idle", 6_000, 21, False),
        ("starting", None, 1, False),
        ("restarting", 4_000, 1, False),
        ("waiting", None, 100, True),
        ("failed", 6_000, 100, True),
    ],
)
def test_a_query_has_time_while_it_keeps_up_with_its_trigger(
    state: StreamState, batch_ms: int | None, seconds_ago: float, *, has_time: bool
) -> None:
    """Neither its last micro-batch nor the one in hand takes longer than 5 s; Spark says every 10 s that it is idle."""
    context: Any = SimpleNamespace(trigger_seconds=lambda _: 5.0)
    application: Any = None
    supervisor = Supervisor(application, Job("streaming.x", pipeline(), None), StopCondition())
    assert not supervisor.has_time
    supervisor._run_context = context
    at = time.time() - seconds_ago
    supervisor.status = StreamStatus("streaming.x", state, batch_ms=batch_ms, updated_at=at)
    assert supervisor.has_time is has_time
