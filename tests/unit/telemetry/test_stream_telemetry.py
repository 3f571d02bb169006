from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from spark_app.telemetry.run_telemetry import RunTelemetry
from spark_app.telemetry.stream_telemetry import MAX_TOPICS, StreamTelemetry
from spark_app.vocabulary import names
from spark_app.vocabulary.names import Metric
from spark_app.vocabulary.stream_lag import Lag
from tests.polling import poll_until
from tests.unit.telemetry.memory import InMemory
from tests.unit.vocabulary.stream_progresses import INPUT, TOPIC, progress, source

QUERY: Final = "streaming.events"
MIDNIGHT: Final = 1767225600.0
"""2026-01-01 in UTC."""
READ_ALL: Final = source({TOPIC: {"0": 5}}, {TOPIC: {"0": 5}})


@dataclass
class Stream:
    """A query whose clock a test sets, and that keeps each of its exports."""

    memory: InMemory
    run: RunTelemetry
    now: float = MIDNIGHT + 2
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Starts to measure."""
        self.telemetry = StreamTelemetry(self.run, clock=lambda: self.now, **self.arguments)

    def after(self, seconds: float) -> None:
        """Lets time pass, and gives a sign of life."""
        self.now += seconds
        self.telemetry.sign_of_life()

    def exported(self, metric: Metric) -> dict[str, float]:
        """What is exported now of a metric, by its label."""
        data = self.run._measurements.collect()
        metrics = data.resource_metrics[0].scope_metrics[0].metrics if data else []
        points = [point for each in metrics if each.name == metric.name for point in each.data.data_points]
        labels = [[v for k, v in (point.attributes or {}).items() if k != names.PIPELINE.name] for point in points]
        return {str(*label): getattr(point, "value", 0) for label, point in zip(labels, points, strict=True)}


@pytest.fixture
def stream(telemetry: InMemory) -> Iterator[Stream]:
    """A query with a trigger of 10 seconds."""
    with telemetry.run(pipeline=QUERY) as run:
        yield Stream(telemetry, run, arguments={"trigger_seconds": 10.0, "sink": "events"})


def test_a_micro_batch_is_counted(stream: Stream, telemetry: InMemory) -> None:
    """Rows are in the counters that batch pipelines use, and on the span of the run."""
    stream.telemetry.progressed(progress(observedMetrics={"written": {"rows": 88}}))
    stream.telemetry.progressed(progress(observedMetrics={"written": {"rows": 1}}))
    stream.run.export_metrics()
    assert telemetry.values("stream.batches") == {(QUERY,): 2}
    assert telemetry.values("pipeline.rows.read") == {(QUERY,): 200}
    assert telemetry.values("pipeline.rows.written") == {(QUERY, "events"): 89}
    assert telemetry.values("pipeline.rows.duplicate") == {(QUERY,): 14}
    assert stream.run._totals == {names.ROWS_READ: 200, names.ROWS_DUPLICATE: 14, names.ROWS_WRITTEN: 89}


def test_a_trigger_without_a_batch_is_not_counted(stream: Stream) -> None:
    """Its progress repeats the figures of the last micro-batch."""
    stream.exported(names.STREAM_BATCHES)
    stream.telemetry.progressed(progress(durationMs={"latestOffset": 3, "triggerExecution": 4}))
    assert stream.exported(names.STREAM_BATCHES) == {}
    assert list(stream.run.errors) == []


def test_counters_start_at_0_before_anything_is_counted(stream: Stream, telemetry: InMemory) -> None:
    """The first value of a series is no increase, and an alert on restarts needs one."""
    assert telemetry.values("stream.restarts") == {(QUERY,): 0}
    assert telemetry.values("stream.batches") == {(QUERY,): 0}
    assert telemetry.values("pipeline.rows.written") == {(QUERY, "events"): 0}


def test_a_restart_is_counted(stream: Stream, telemetry: InMemory) -> None:
    """Each one."""
    stream.telemetry.restarted()
    stream.telemetry.restarted()
    stream.run.export_metrics()
    assert telemetry.values("stream.restarts") == {(QUERY,): 2}


def test_one_state_is_1_and_the_others_are_0(stream: Stream) -> None:
    """A state that has ended is 0 at once, so that no two are seen at a time."""
    for state in ("waiting", "running", "idle", "restarting", "running", "failed", "stopped"):
        stream.telemetry.enter(state)
        assert stream.exported(names.STREAM_STATE_NOW) == {each: int(each == state) for each in names.STREAM_STATES}


def test_a_state_has_the_time_at_which_it_was_last_known(stream: Stream) -> None:
    """By it, an alert tells a query that was stopped from one whose process was killed."""
    stream.telemetry.enter("running")
    stream.exported(names.STREAM_STATE_TIME)
    stream.after(20)
    assert stream.exported(names.STREAM_STATE_TIME) == {"running": MIDNIGHT + 22}


def test_a_sign_of_life_is_given_every_quarter_of_a_minute(stream: Stream) -> None:
    """And not at each flush, which would only fill the files of a run of weeks."""
    stream.exported(names.STREAM_STATE_NOW)
    stream.after(10)
    assert stream.exported(names.STREAM_STATE_NOW) == {}
    stream.after(5)
    assert stream.exported(names.STREAM_STATE_NOW)["starting"] == 1


def test_signs_of_life_come_with_the_flushes_of_the_run(flushed: InMemory) -> None:
    """Nobody else has to think of them."""
    with flushed.run(pipeline=QUERY) as run:
        stream = Stream(flushed, run)
        stream.now += 3600

        def seen() -> bool:
            kept = [each for data in tuple(flushed.metrics_kept.kept) for each in data.resource_metrics]
            metrics = [metric for each in kept for metric in each.scope_metrics[0].metrics]
            times = [metric.data.data_points[0] for metric in metrics if metric.name == "stream.query.state.timestamp"]
            return any(getattr(point, "value", 0) == stream.now for point in times)

        poll_until(seen, "no sign of life was exported")


def test_a_repeated_state_is_not_measured_each_time(stream: Stream) -> None:
    """A supervisor may look at the query, and say that it is idle, many times a second."""
    stream.telemetry.enter("idle")
    stream.exported(names.STREAM_STATE_NOW)
    stream.telemetry.enter("idle")
    assert stream.exported(names.STREAM_STATE_NOW) == {}


def test_idle_holds_until_spark_no_longer_says_so(stream: Stream) -> None:
    """Spark reports no start of a micro-batch: after a minute of silence, a query is at work."""
    stream.telemetry.enter("idle")
    stream.after(50)
    assert stream.exported(names.STREAM_STATE_NOW)["idle"] == 1
    stream.telemetry.enter("idle")
    stream.after(50)
    assert stream.exported(names.STREAM_STATE_NOW)["idle"] == 1
    stream.after(20)
    assert stream.exported(names.STREAM_STATE_NOW)["running"] == 1


def test_idle_holds_for_three_long_triggers(telemetry: InMemory) -> None:
    """A query that looks for input every ten minutes says so every ten minutes."""
    with telemetry.run(pipeline=QUERY) as run:
        stream = Stream(telemetry, run, arguments={"trigger_seconds": 600.0})
        stream.telemetry.enter("idle")
        stream.after(1200)
        assert stream.exported(names.STREAM_STATE_NOW)["idle"] == 1


def test_lag_in_seconds_is_the_age_of_the_newest_record(stream: Stream) -> None:
    """It grows while records wait, whether or not a micro-batch ends."""
    stream.telemetry.progressed(progress())
    assert stream.exported(names.STREAM_LAG_TIME) == {TOPIC: 10}
    stream.after(300)
    assert stream.exported(names.STREAM_LAG_TIME) == {TOPIC: 310}


def test_lag_in_seconds_is_0_while_the_offsets_are_equal(stream: Stream) -> None:
    """Only while Spark says so: a query that hangs does not know what arrives."""
    stream.telemetry.progressed(progress(sources=READ_ALL))
    assert stream.exported(names.STREAM_LAG_TIME) == {TOPIC: 0}
    stream.after(50)
    assert stream.exported(names.STREAM_LAG_TIME) == {TOPIC: 0}
    stream.after(20)
    assert stream.exported(names.STREAM_LAG_TIME) == {TOPIC: 80}


def test_lag_is_what_the_brokers_say_at_each_flush(telemetry: InMemory) -> None:
    """Whatever Spark said of the last micro-batch; while nobody knows it, and once the query has failed, nothing."""
    answers: list[Lag | None] = [
        Lag({TOPIC: 7, "clicks": 0}, {TOPIC: MIDNIGHT - 18}),
        None,
        Lag({TOPIC: 9}, {TOPIC: None}),
    ]
    with telemetry.run(pipeline=QUERY) as run:
        stream = Stream(telemetry, run, arguments={"trigger_seconds": 20.0, "ask_lag": lambda: answers[0]})
        stream.telemetry.progressed(progress(sources=READ_ALL))
        assert (stream.exported(names.STREAM_LAG_RECORDS), stream.exported(names.STREAM_LAG_TIME)) == ({}, {})
        stream.after(0)
        assert stream.exported(names.STREAM_LAG_RECORDS) == {TOPIC: 7, "clicks": 0}
        stream.after(4)
        assert stream.exported(names.STREAM_LAG_TIME) == {TOPIC: 24, "clicks": 0}
        answers.pop(0)
        stream.after(4)
        assert (stream.exported(names.STREAM_LAG_RECORDS), stream.exported(names.STREAM_LAG_TIME)) == ({}, {})
        answers.pop(0)
        stream.after(4)
        assert (stream.exported(names.STREAM_LAG_RECORDS), stream.exported(names.STREAM_LAG_TIME)) == ({TOPIC: 9}, {})
        stream.telemetry.enter("failed")
        stream.after(4)
        assert stream.exported(names.STREAM_LAG_RECORDS) == {}


def test_lag_in_seconds_of_files_is_0_when_the_query_is_idle(stream: Stream) -> None:
    """Files have no latest offset: that nothing is left is known when a trigger finds none."""
    stream.telemetry.progressed(progress(sources=source(None, {"logOffset": 1})))
    assert stream.exported(names.STREAM_LAG_TIME) == {TOPIC: 10}
    stream.telemetry.enter("idle")
    assert stream.exported(names.STREAM_LAG_TIME) == {TOPIC: 0}


def test_lag_in_seconds_is_unknown_before_the_first_record_and_for_one_of_the_future(stream: Stream) -> None:
    """A wrong clock of a producer would make a negative lag."""
    stream.telemetry.progressed(progress(observedMetrics={}))
    assert stream.exported(names.STREAM_LAG_TIME) == {}
    stream.telemetry.progressed(progress(observedMetrics={INPUT: {"newest": MIDNIGHT + 60}}))
    assert stream.exported(names.STREAM_LAG_TIME) == {}


def test_the_age_of_progress_grows_unless_a_batch_ends_or_nothing_is_to_be_read(stream: Stream) -> None:
    """A restart is no progress: a query that fails again and again makes none."""
    stream.after(100)
    assert stream.exported(names.STREAM_PROGRESS_AGE) == {"": 100}
    stream.telemetry.progressed(progress())
    assert stream.exported(names.STREAM_PROGRESS_AGE) == {"": 0}
    stream.after(100)
    stream.telemetry.enter("restarting")
    stream.telemetry.enter("running")
    assert stream.exported(names.STREAM_PROGRESS_AGE) == {"": 100}
    stream.telemetry.enter("idle")
    assert stream.exported(names.STREAM_PROGRESS_AGE) == {"": 0}


def test_a_query_that_waits_is_not_stuck(stream: Stream) -> None:
    """Nor is it when it starts: only then it has something to do."""
    stream.exported(names.STREAM_PROGRESS_AGE)
    stream.telemetry.enter("waiting")
    stream.after(3600)
    assert stream.exported(names.STREAM_PROGRESS_AGE) == {}
    stream.telemetry.enter("running")
    assert stream.exported(names.STREAM_PROGRESS_AGE) == {"": 0}


@pytest.mark.parametrize("metric", [names.STREAM_LAG_TIME, names.STREAM_PROGRESS_AGE])
@pytest.mark.parametrize("state", ["stopped", "failed"])
def test_nothing_of_a_query_that_ended_grows(stream: Stream, state: names.StreamState, metric: Metric) -> None:
    """It would grow for as long as other queries of the process run."""
    stream.telemetry.progressed(progress())
    stream.exported(metric)
    stream.telemetry.enter(state)
    stream.after(100)
    assert stream.exported(metric) == {}


def test_gauges_of_a_batch_are_exported_once(stream: Stream) -> None:
    """An idle query has no rates, and one that was stopped no state: neither the last values nor zeros."""
    gauges = (names.STREAM_INPUT_RATE, names.STREAM_STATE_ROWS, names.STREAM_LAG_RECORDS, names.STREAM_WATERMARK_DELAY)
    for gauge in gauges:
        stream.telemetry.progressed(progress())
        assert stream.exported(gauge)
    stream.telemetry.enter("idle")
    stream.after(100)
    for gauge in gauges:
        stream.telemetry.enter("running")
        stream.telemetry.enter("idle")
        assert stream.exported(gauge) == {}


def test_topics_are_bounded(stream: Stream) -> None:
    """A query that subscribes to a pattern may read any number; each would be a series for ever."""
    topics = {f"topic {number:03}": {"0": 1} for number in range(2 * MAX_TOPICS)}
    newest = {f"input {topic}": {"newest": MIDNIGHT} for topic in topics}
    stream.telemetry.progressed(progress(sources=source(topics, topics), observedMetrics=newest))
    exported = stream.exported(names.STREAM_LAG_RECORDS)
    assert sorted(exported) == sorted(topics)[:MAX_TOPICS]
    stream.telemetry.progressed(progress(sources=source(topics, topics), observedMetrics=newest))
    assert len(stream.exported(names.STREAM_LAG_TIME)) == MAX_TOPICS


def test_several_threads_may_measure(stream: Stream, telemetry: InMemory) -> None:
    """The listener, the supervisor and the flush are threads of their own: nothing is lost."""
    calls: list[Callable[[], object]] = [
        lambda: stream.telemetry.progressed(progress()),
        stream.telemetry.restarted,
        lambda: stream.after(20),
        stream.run.flush,
    ] * 50
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda call: call(), calls))
    stream.run.export_metrics()
    assert telemetry.values("stream.batches") == {(QUERY,): 50}
    assert telemetry.values("stream.restarts") == {(QUERY,): 50}
    assert list(stream.run.errors) == []
