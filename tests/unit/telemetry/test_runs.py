import dataclasses
import datetime
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from opentelemetry.trace import StatusCode

from app.errors import ConfigError, InputError, QualityGateError
from app.settings import Schedule
from app.telemetry import names
from app.telemetry.facts import outcome_of
from app.telemetry.names import OUTCOMES, Outcome
from tests.unit.telemetry.memory import InMemory, file_metrics, file_spans, plain

IDENTITY: Final = {
    "pipeline.name": "etl.daily_sales",
    "pipeline.run.id": "run-1",
    "pipeline.invocation.id": "0a1b2c3d4e5f",
    "pipeline.run.date": "2024-01-01",
}
RESOURCE: Final = {
    "service.name": "spark-app",
    "service.version": "1.2.3",
    "service.instance.id": "batch",
    "deployment.environment.name": "test",
    "spark.app.name": "shop",
}


@pytest.fixture
def told(telemetry: InMemory) -> InMemory:
    """A run with two steps, one in the other, that counted what it did."""
    with telemetry.run() as run:
        with run.step("write bronze", kind="write", table="bronze") as outer:
            outer.count(rows_written=9, bytes_read=1000, bytes_written=500, files=2)
            with run.step("read transactions", kind="read"):
                pass
        run.record(
            rows_read=10,
            rows_written={"bronze": 10, "transactions": 6},
            rows_published=6,
            rows_quarantined=3,
            rows_duplicate=1,
            rows_unaccounted=0,
            bytes_read=1000,
            bytes_written=500,
        )
        run.record_freshness("transactions", seconds=90.5)
    return telemetry


def test_spans_have_exactly_these_names_and_attributes(told: InMemory) -> None:
    """Names, attributes and types of values are a contract: dashboards and the report read them."""
    assert {name: dict(span.attributes or {}) for name, span in told.spans.items()} == {
        "run etl.daily_sales": {
            **IDENTITY,
            "spark.app.name": "shop",
            "pipeline.rows.read": 10,
            "pipeline.rows.written": 6,
            "pipeline.rows.quarantined": 3,
            "pipeline.rows.duplicate": 1,
            "pipeline.rows.unaccounted": 0,
            "pipeline.bytes.read": 1000,
            "pipeline.bytes.written": 500,
            "pipeline.run.outcome": "succeeded",
        },
        "step write bronze": {
            **IDENTITY,
            "pipeline.step.name": "write bronze",
            "pipeline.step.kind": "write",
            "pipeline.table": "bronze",
            "pipeline.rows.written": 9,
            "pipeline.bytes.read": 1000,
            "pipeline.bytes.written": 500,
            "pipeline.files": 2,
        },
        "step read transactions": {
            **IDENTITY,
            "pipeline.step.name": "read transactions",
            "pipeline.step.kind": "read",
        },
    }
    for span in told.spans.values():
        assert {type(value) for value in (span.attributes or {}).values()} <= {str, int}


def test_the_catalogue_has_just_the_attributes_that_spans_have(told: InMemory) -> None:
    """What no run and no step ever carries is not promised, and what they carry is."""
    for kind, span in ((names.RUN_SPAN, "run etl.daily_sales"), (names.STEP_SPAN, "step write bronze")):
        assert set(told.spans[span].attributes or {}) == {attribute.name for attribute in kind.attributes}


def test_every_span_but_the_run_has_its_parent(told: InMemory) -> None:
    """No orphans: a step hangs on the step around it, else on the run; all are in one trace."""
    spans = told.spans
    parents = {name: span.parent.span_id if span.parent else None for name, span in spans.items()}
    ids = {name: span.get_span_context().span_id for name, span in spans.items()}  # type: ignore[union-attr]
    assert parents == {
        "run etl.daily_sales": None,
        "step write bronze": ids["run etl.daily_sales"],
        "step read transactions": ids["step write bronze"],
    }
    assert len({span.get_span_context().trace_id for span in spans.values()}) == 1  # type: ignore[union-attr]


def test_metrics_have_exactly_these_names_units_and_values(told: InMemory) -> None:
    """Names, units, labels and values are a contract: panels and alerts read them."""
    units = {metric.name: metric.unit for metric in told.metrics}
    assert units == {
        "pipeline.runs": "{run}",
        "pipeline.run.duration": "s",
        "pipeline.step.duration": "s",
        "pipeline.run.last_success.timestamp": "s",
        "pipeline.rows.read": "{row}",
        "pipeline.rows.written": "{row}",
        "pipeline.rows.quarantined": "{row}",
        "pipeline.rows.duplicate": "{row}",
        "pipeline.rows.unaccounted": "{row}",
        "pipeline.bytes.read": "By",
        "pipeline.bytes.written": "By",
        "pipeline.data.freshness": "s",
    }
    name = "etl.daily_sales"
    assert told.values("pipeline.runs") == {(name, each): int(each == "succeeded") for each in OUTCOMES}
    assert told.values("pipeline.run.duration") == {(name, "succeeded"): 1}
    assert told.values("pipeline.step.duration") == {
        (name, "write", "write bronze"): 1,
        (name, "read", "read transactions"): 1,
    }
    assert told.values("pipeline.rows.read") == {(name,): 10}
    assert told.values("pipeline.rows.written") == {(name, "bronze"): 10, (name, "transactions"): 6}
    assert told.values("pipeline.rows.quarantined") == {(name,): 3}
    assert told.values("pipeline.rows.duplicate") == {(name,): 1}
    assert told.values("pipeline.rows.unaccounted") == {(name,): 0}
    assert told.values("pipeline.bytes.read") == {(name,): 1000}
    assert told.values("pipeline.bytes.written") == {(name,): 500}
    assert told.values("pipeline.data.freshness") == {(name, "transactions"): 90.5}


def test_the_resource_says_who_reports(told: InMemory) -> None:
    """All three signals carry the same five attributes, and nothing that differs from run to run."""
    resources = [span.resource for span in told.spans.values()]
    resources += [data.resource_metrics[0].resource for data in told.metrics_kept.kept]
    for resource in resources:
        ours = {name: value for name, value in resource.attributes.items() if not name.startswith("telemetry.sdk.")}
        assert ours == RESOURCE


def test_what_adds_up_starts_at_0_in_an_export_of_its_own(telemetry: InMemory) -> None:
    """The first value of a series never counts as an increase, so the first one sent is 0."""
    with telemetry.run():
        pass
    telemetry.telemetry.close()
    first = telemetry.metrics_kept.kept[0].resource_metrics[0].scope_metrics[0].metrics
    values = {metric.name: [getattr(point, "value", None) for point in metric.data.data_points] for metric in first}
    rows = {f"pipeline.rows.{what}": [0] for what in ("read", "quarantined", "duplicate", "unaccounted")}
    size = {f"pipeline.bytes.{what}": [0] for what in ("read", "written")}
    assert values == {"pipeline.runs": [0] * len(OUTCOMES), **rows, **size}


def test_the_rows_of_a_table_start_at_0_when_it_is_about_to_be_written(telemetry: InMemory) -> None:
    """Which tables a run writes is known then; the rows are counted in a later export."""
    with telemetry.run() as run, run.step("write bronze", kind="write", table="bronze"):
        run.record(rows_written={"bronze": 7})
    points = [metric.data.data_points for metric in telemetry.metrics if metric.name == "pipeline.rows.written"]
    assert [[getattr(point, "value", None) for point in each] for each in points] == [[0], [7]]


def test_the_last_day_of_the_calendar_has_an_end(telemetry: InMemory) -> None:
    """Whatever a schedule leads to, the run has published by then and does not fail."""
    facts = dataclasses.replace(telemetry.run().facts, date=datetime.date.max)
    with telemetry.telemetry.run(facts) as run:
        run.record_freshness("transactions", seconds=600)
        run.record_schedule(Schedule(every=3600, grace=60, max_age=7200))
        run.record_schedule(Schedule.model_construct(every="no number"))
    end = datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC).timestamp() + 86_400
    assert list(telemetry.values("pipeline.data.stale.timestamp").values()) == [end - 600 + 7200]
    (told,) = telemetry.telemetry.problems
    assert told.startswith("the schedule is not told: ")


def test_a_run_that_does_not_succeed_tells_when(telemetry: InMemory) -> None:
    """The alert stands until a success is newer than the last failure, so both are times."""
    began = time.time()
    with pytest.raises(InputError), telemetry.run():
        raise InputError("no raw data")
    ((labels, value),) = telemetry.values("pipeline.run.last_failure.timestamp").items()
    assert labels == ("etl.daily_sales", "missing_input")
    assert began <= value <= time.time()
    assert telemetry.values("pipeline.run.last_success.timestamp") == {}


def test_a_schedule_tells_by_when_what_is_expected(telemetry: InMemory) -> None:
    """The next run is due after the interval and the grace; data is stale when its newest row is too old."""
    with telemetry.run() as run:
        run.record_freshness("transactions", seconds=600)
        began = time.time()
        run.record_schedule(Schedule(every=3600, grace=60, max_age=7200))
        ended = time.time()
    (due,) = telemetry.values("pipeline.schedule.due.timestamp").values()
    (missed,) = telemetry.values("pipeline.schedule.missed.timestamp").values()
    assert began + 3660 <= due <= ended + 3660
    assert missed - due == pytest.approx(3600)
    end_of_day = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC).timestamp()
    assert telemetry.values("pipeline.data.stale.timestamp") == {
        ("etl.daily_sales", "transactions"): end_of_day - 600 + 7200
    }


def test_no_schedule_takes_the_last_one_back(telemetry: InMemory) -> None:
    """A gauge is remembered for days: 0 says that nothing is expected any more."""
    with telemetry.run() as run:
        run.record_freshness("transactions", seconds=600)
        run.record_schedule(None)
    assert telemetry.values("pipeline.schedule.due.timestamp") == {("etl.daily_sales",): 0}
    assert telemetry.values("pipeline.schedule.missed.timestamp") == {("etl.daily_sales",): 0}
    assert telemetry.values("pipeline.data.stale.timestamp") == {}


def test_what_is_not_known_is_absent(telemetry: InMemory) -> None:
    """0 would be a claim: a step that counts nothing says nothing, and nothing is added to a metric."""
    with telemetry.run() as run:
        with run.step("publish", kind="publish") as step:
            step.count(bytes_read=None, rows_written=0)
        run.record()
    found = telemetry.spans["step publish"].attributes or {}
    assert "pipeline.bytes.read" not in found
    assert found["pipeline.rows.written"] == 0
    assert "pipeline.rows.written" not in (telemetry.spans["run etl.daily_sales"].attributes or {})
    assert telemetry.values("pipeline.rows.read") == {("etl.daily_sales",): 0}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (QualityGateError("x"), "rejected"),
        (InputError("x"), "missing_input"),
        (ConfigError("x"), "failed"),
        (ValueError("x"), "failed"),
        (KeyboardInterrupt(), "interrupted"),
        (SystemExit(130), "interrupted"),
        (None, "succeeded"),
    ],
)
def test_the_exception_tells_the_outcome(error: BaseException | None, outcome: Outcome) -> None:
    """A gate rejects, missing input is told apart from failure, and an interruption is none of these."""
    assert outcome_of(error) == outcome


def test_an_exception_goes_on_unchanged_and_is_on_both_spans(telemetry: InMemory) -> None:
    """The same object leaves; span and run say its type, message and where it came from, and their status is error."""
    error = QualityGateError("amount: 3 of 10 rows are negative")
    with (
        pytest.raises(QualityGateError) as raised,
        telemetry.run() as run,
        run.step("publish transactions", kind="publish"),
    ):
        raise error
    assert raised.value is error
    assert (error.__cause__, error.__context__) == (None, None)
    for span in telemetry.spans.values():
        assert span.status.status_code is StatusCode.ERROR
        (event,) = span.events
        found = dict(event.attributes or {})
        assert "test_an_exception_goes_on" in str(found.pop("exception.stacktrace"))
        assert (event.name, found) == (
            "exception",
            {"exception.type": "app.errors.QualityGateError", "exception.message": str(error)},
        )
    assert telemetry.values("pipeline.runs")["etl.daily_sales", "rejected"] == 1
    assert telemetry.values("pipeline.run.last_success.timestamp") == {}


def test_a_long_message_is_cut_and_said_to_be(telemetry: InMemory) -> None:
    """Spark's messages hold whole plans: 4096 characters of one are kept, and a flag tells that more existed."""
    with pytest.raises(ValueError, match="xxx"), telemetry.run():
        raise ValueError("x" * 4097)
    found = telemetry.spans["run etl.daily_sales"].events[0].attributes or {}
    assert found["exception.message"] == "x" * 4096
    assert found["exception.message.truncated"] is True


class UnspeakableError(Exception):
    """Raises when it is asked for its text, as py4j's do after the JVM is gone."""

    def __str__(self) -> str:
        raise ConnectionError


def test_an_exception_without_a_text_is_told_too(telemetry: InMemory) -> None:
    """py4j fetches the text from the JVM, which may be gone; the span still ends, and the exception goes on."""
    with pytest.raises(UnspeakableError), telemetry.run():
        raise UnspeakableError
    found = telemetry.spans["run etl.daily_sales"].events[0].attributes or {}
    assert found["exception.message"] == "(no message: asking for it raised ConnectionError)"


def test_a_step_started_on_another_thread_has_its_parent(telemetry: InMemory) -> None:
    """The current span is not inherited by threads; the run is the parent all the same."""
    with telemetry.run() as run:

        def work() -> None:
            with run.step("write bronze", kind="write"):
                pass

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    parent = telemetry.spans["step write bronze"].parent
    assert parent is not None
    assert parent == telemetry.spans["run etl.daily_sales"].get_span_context()


def test_traceparent_makes_others_children_of_the_step(telemetry: InMemory) -> None:
    """The header has the ids of the step, and they are those in the files."""
    with telemetry.run() as run, run.step("write bronze", kind="write") as step:
        version, trace_id, span_id, flags = (step.traceparent or "").split("-")
    kept = file_spans(telemetry.folder / "run-1" / "traces.jsonl")["step write bronze"]
    assert (version, int(flags, 16) & 1) == ("00", 1)
    assert (trace_id, span_id) == (step.trace_id, step.span_id) == (kept["traceId"], kept["spanId"])


@pytest.fixture(params=["01", "00"])
def child(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InMemory]:
    """Telemetry of a process that was started by a traced one, which is sampled or not."""
    traceparent = f"00-{'ab' * 16}-{'cd' * 8}-{request.param}"
    memory = InMemory(tmp_path, variables={"TRACEPARENT": traceparent})
    with memory.run():
        pass
    yield memory
    memory.telemetry.close()


def test_traceparent_of_the_environment_is_the_parent(child: InMemory) -> None:
    """A scheduler that traces sees its runs as children; the files have them even if it does not sample."""
    span = file_spans(child.folder / "run-1" / "traces.jsonl")["run etl.daily_sales"]
    assert (span["traceId"], span["parentSpanId"]) == ("ab" * 16, "cd" * 8)


def test_what_is_not_sampled_is_not_sent(tmp_path: Path) -> None:
    """Sampling is about what is sent: the parent decided, and is obeyed."""
    memory = InMemory(tmp_path, variables={"TRACEPARENT": f"00-{'ab' * 16}-{'cd' * 8}-00"})
    with memory.run():
        pass
    assert memory.spans == {}


def test_runs_of_one_process_do_not_mix(telemetry: InMemory) -> None:
    """Each run's files have its own spans and figures only, gauges too, and its trace is its own."""
    with telemetry.run("first", pipeline="etl.customers") as run:
        run.record(rows_read=1)
        run.record_freshness("customers", seconds=1.0)
    with telemetry.run("second") as run:
        run.record(rows_read=2)
    for run_id, pipeline in (("first", "etl.customers"), ("second", "etl.daily_sales")):
        spans = file_spans(telemetry.folder / run_id / "traces.jsonl")
        assert list(spans) == [f"run {pipeline}"]
        for metric in file_metrics(telemetry.folder / run_id / "metrics.jsonl"):
            ((_, data),) = [(key, value) for key, value in metric.items() if isinstance(value, dict)]
            assert {plain(point["attributes"])["pipeline.name"] for point in data["dataPoints"]} == {pipeline}
    assert len({span.get_span_context().trace_id for span in telemetry.spans.values()}) == 2  # type: ignore[union-attr]


def test_counters_and_histograms_are_deltas(told: InMemory) -> None:
    """Each process starts at nothing; a collector adds the deltas up."""
    temporality = {
        metric.data.aggregation_temporality.name
        for metric in told.metrics
        if hasattr(metric.data, "aggregation_temporality")
    }
    assert temporality == {"DELTA"}


def test_nothing_goes_wrong_unseen(told: InMemory) -> None:
    """A sound run leaves an empty list of problems."""
    told.telemetry.close()
    assert told.telemetry.problems == []
