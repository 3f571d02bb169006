import dataclasses
import datetime
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import StatusCode

from spark_app.errors import ConfigError, InputError, QualityGateError
from spark_app.settings import Schedule
from spark_app.telemetry.run_identity import outcome_of
from spark_app.vocabulary import names
from spark_app.vocabulary.names import OUTCOMES, Outcome
from tests.unit.telemetry.memory import InMemory, file_metrics, file_spans, plain

IDENTITY: Final = {
    "pipeline.name": "etl.daily_sales",
    "pipeline.run.id": "run-1",
    "pipeline.invocation.id": "0a1b2c3d4e5f",
    "pipeline.run.slice": "2024-01-01",
}
END_OF_DAY: Final = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC).timestamp()
RESOURCE: Final = {
    "service.name": "spark-app",
    "service.version": "1.2.3",
    "service.instance.id": "batch",
    "deployment.environment.name": "test",
    "spark.app.name": "shop",
}


@pytest.fixture
def finished(telemetry: InMemory) -> InMemory:
    """A run with two nested steps and all counts."""
    with telemetry.run() as run:
        with run.step("write bronze", kind="write", table="bronze") as outer:
            outer.count(rows_written=9, bytes_read=1000, bytes_written=500, files=2)
            outer.about(3, average_precision=0.25, roc_auc=0.75)
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
        run.record_freshness("transactions", seconds=90.5, as_of=END_OF_DAY)
    return telemetry


def test_spans_have_exactly_these_names_and_attributes(finished: InMemory) -> None:
    """Names, attributes and types of values are a contract: dashboards and the report read them."""
    assert {name: dict(span.attributes or {}) for name, span in finished.spans.items()} == {
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
            "ml.model.version": 3,
            "ml.average_precision": 0.25,
            "ml.roc_auc": 0.75,
        },
        "step read transactions": {
            **IDENTITY,
            "pipeline.step.name": "read transactions",
            "pipeline.step.kind": "read",
        },
    }
    for span in finished.spans.values():
        assert {type(value) for value in (span.attributes or {}).values()} <= {str, int, float}


def test_the_catalogue_has_exactly_the_attributes_of_spans(finished: InMemory) -> None:
    """Each attribute of the catalogue is on a span, and each attribute of a span in the catalogue."""
    for kind, span in ((names.RUN_SPAN, "run etl.daily_sales"), (names.STEP_SPAN, "step write bronze")):
        assert set(finished.spans[span].attributes or {}) == {attribute.name for attribute in kind.attributes}


def test_every_span_but_the_run_has_its_parent(finished: InMemory) -> None:
    """The parent of a step is the step around it, else the run; all are in one trace."""
    spans = finished.spans
    parents = {name: span.parent.span_id if span.parent else None for name, span in spans.items()}
    ids = {name: span.get_span_context().span_id for name, span in spans.items()}  # type: ignore[union-attr]
    assert parents == {
        "run etl.daily_sales": None,
        "step write bronze": ids["run etl.daily_sales"],
        "step read transactions": ids["step write bronze"],
    }
    assert len({span.get_span_context().trace_id for span in spans.values()}) == 1  # type: ignore[union-attr]


def test_maintenance_is_a_trace_of_its_own_that_links_to_its_run(telemetry: InMemory) -> None:
    """A run for months has thousands of such steps."""
    with telemetry.run() as run, run.step("compact bronze", kind="maintain", table="bronze"):
        pass
    of_run, step = telemetry.spans["run etl.daily_sales"], telemetry.spans["step compact bronze"]
    assert step.parent is None
    assert [link.context for link in step.links] == [of_run.get_span_context()]
    assert step.get_span_context().trace_id != of_run.get_span_context().trace_id  # type: ignore[union-attr]


def test_metrics_have_exactly_these_names_units_and_values(finished: InMemory) -> None:
    """Names, units, labels and values are a contract: panels and alerts read them."""
    units = {metric.name: metric.unit for metric in finished.metrics}
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
    assert finished.values("pipeline.runs") == {(name, each): int(each == "succeeded") for each in OUTCOMES}
    assert finished.values("pipeline.run.duration") == {(name, "succeeded"): 1}
    assert finished.values("pipeline.step.duration") == {
        (name, "write", "write bronze"): 1,
        (name, "read", "read transactions"): 1,
    }
    assert finished.values("pipeline.rows.read") == {(name,): 10}
    assert finished.values("pipeline.rows.written") == {(name, "bronze"): 10, (name, "transactions"): 6}
    assert finished.values("pipeline.rows.quarantined") == {(name,): 3}
    assert finished.values("pipeline.rows.duplicate") == {(name,): 1}
    assert finished.values("pipeline.rows.unaccounted") == {(name,): 0}
    assert finished.values("pipeline.bytes.read") == {(name,): 1000}
    assert finished.values("pipeline.bytes.written") == {(name,): 500}
    assert finished.values("pipeline.data.freshness") == {(name, "transactions"): 90.5}


def who_reports(resource: Resource) -> dict[str, object]:
    """The attributes of a resource, without those that the SDK adds."""
    return {name: value for name, value in resource.attributes.items() if not name.startswith("telemetry.sdk.")}


def test_the_resource_says_who_reports(finished: InMemory) -> None:
    """All spans carry the same five attributes, and nothing that differs from run to run."""
    for span in finished.spans.values():
        assert who_reports(span.resource) == RESOURCE


@pytest.mark.parametrize("pipeline", ["etl.daily_sales", "streaming.events"])
def test_a_pipeline_is_one_series_whichever_command_ran_it(telemetry: InMemory, pipeline: str) -> None:
    """Its metrics do not name the application, which `etl` and `ml` call as themselves; those of a query do."""
    with telemetry.run(pipeline=pipeline):
        pass
    telemetry.telemetry.close()
    seen = [who_reports(each.resource_metrics[0].resource) for each in telemetry.metrics_kept.kept]
    is_query = pipeline.startswith("streaming.")
    wanted = {name: value for name, value in RESOURCE.items() if is_query or name != "spark.app.name"}
    assert seen == [wanted] * len(seen) != []


def test_counters_start_at_0_in_an_export_of_their_own(telemetry: InMemory) -> None:
    """The first value of a series never counts as an increase, so the first one sent is 0."""
    with telemetry.run():
        pass
    telemetry.telemetry.close()
    first = telemetry.metrics_kept.kept[0].resource_metrics[0].scope_metrics[0].metrics
    values = {metric.name: [getattr(point, "value", None) for point in metric.data.data_points] for metric in first}
    rows = {f"pipeline.rows.{what}": [0] for what in ("read", "quarantined", "duplicate", "unaccounted")}
    size = {f"pipeline.bytes.{what}": [0] for what in ("read", "written")}
    assert values == {"pipeline.runs": [0] * len(OUTCOMES), **rows, **size}


def test_the_rows_of_a_table_start_at_0_before_it_is_written(telemetry: InMemory) -> None:
    """The step names the table when it starts; the rows are counted in a later export."""
    with telemetry.run() as run, run.step("write bronze", kind="write", table="bronze"):
        run.record(rows_written={"bronze": 7})
    points = [metric.data.data_points for metric in telemetry.metrics if metric.name == "pipeline.rows.written"]
    assert [[getattr(point, "value", None) for point in each] for each in points] == [[0], [0, 7]]


def test_a_wrong_schedule_does_not_fail_a_run(telemetry: InMemory) -> None:
    """The run has published: a failure to compute the times is one error."""
    with telemetry.run() as run:
        run.record_freshness("transactions", seconds=600, as_of=END_OF_DAY)
        run.record_schedule(Schedule.model_construct(every="no number"))
    (error,) = telemetry.telemetry.errors
    assert error.startswith("the schedule is not recorded: ")


def test_a_run_without_a_slice_has_no_attribute_for_it(telemetry: InMemory) -> None:
    """A streaming query is about no day: an empty text would be a claim."""
    identity = dataclasses.replace(telemetry.run().identity, slice="")
    with telemetry.telemetry.run(identity) as run, run.step("read", kind="read"):
        pass
    for span in telemetry.spans.values():
        assert "pipeline.run.slice" not in (span.attributes or {})


def test_a_run_that_does_not_succeed_sets_the_time_of_failure(telemetry: InMemory) -> None:
    """The alert fires until a success is newer than the last failure, so both are times."""
    began = time.time()
    with pytest.raises(InputError), telemetry.run():
        raise InputError("no raw data")
    ((labels, value),) = telemetry.values("pipeline.run.last_failure.timestamp").items()
    assert labels == ("etl.daily_sales", "missing_input")
    assert began <= value <= time.time()
    assert telemetry.values("pipeline.run.last_success.timestamp") == {}


def test_a_schedule_sets_the_times_that_alerts_compare(telemetry: InMemory) -> None:
    """The next run is due after the interval and the grace; data is stale when its newest row is too old."""
    with telemetry.run() as run:
        run.record_freshness("transactions", seconds=600, as_of=END_OF_DAY)
        began = time.time()
        run.record_schedule(Schedule(every=3600, grace=60, max_age=7200))
        ended = time.time()
    (due,) = telemetry.values("pipeline.schedule.due.timestamp").values()
    (missed,) = telemetry.values("pipeline.schedule.missed.timestamp").values()
    assert began + 3660 <= due <= ended + 3660
    assert missed - due == pytest.approx(3600)
    assert telemetry.values("pipeline.data.stale.timestamp") == {
        ("etl.daily_sales", "transactions"): END_OF_DAY - 600 + 7200
    }


def test_no_schedule_resets_the_times(telemetry: InMemory) -> None:
    """Prometheus keeps a gauge for days: 0 says that no run is expected."""
    with telemetry.run() as run:
        run.record_freshness("transactions", seconds=600, as_of=END_OF_DAY)
        run.record_schedule(None)
    assert telemetry.values("pipeline.schedule.due.timestamp") == {("etl.daily_sales",): 0}
    assert telemetry.values("pipeline.schedule.missed.timestamp") == {("etl.daily_sales",): 0}
    assert telemetry.values("pipeline.data.stale.timestamp") == {}


def test_an_unknown_count_is_absent(telemetry: InMemory) -> None:
    """0 would be a claim: a step without counts has no attributes for them, and no metric changes."""
    with telemetry.run() as run:
        with run.step("publish", kind="publish") as step:
            step.count(bytes_read=None, rows_written=0)
            step.about(3, roc_auc=None)
        run.record()
    attributes = telemetry.spans["step publish"].attributes or {}
    assert not {"pipeline.bytes.read", "ml.roc_auc"} & attributes.keys()
    assert attributes["pipeline.rows.written"] == 0
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
def test_the_exception_decides_the_outcome(error: BaseException | None, outcome: Outcome) -> None:
    """A rejection, missing input and an interruption each differ from a failure."""
    assert outcome_of(error) == outcome


def test_an_exception_is_raised_unchanged_and_is_on_both_spans(telemetry: InMemory) -> None:
    """The same object is raised; both spans have its type, message and stack trace, and the status error."""
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
        attributes = dict(event.attributes or {})
        assert "test_an_exception_is_raised" in str(attributes.pop("exception.stacktrace"))
        assert (event.name, attributes) == (
            "exception",
            {"exception.type": "spark_app.errors.QualityGateError", "exception.message": str(error)},
        )
    assert telemetry.values("pipeline.runs")["etl.daily_sales", "rejected"] == 1
    assert telemetry.values("pipeline.run.last_success.timestamp") == {}


def test_a_long_message_is_truncated_and_flagged(telemetry: InMemory) -> None:
    """Messages of Spark have whole plans: 4096 characters are kept, and a flag says that there were more."""
    with pytest.raises(ValueError, match="xxx"), telemetry.run():
        raise ValueError("x" * 4097)
    attributes = telemetry.spans["run etl.daily_sales"].events[0].attributes or {}
    assert attributes["exception.message"] == "x" * 4096
    assert attributes["exception.message.truncated"] is True


class WithoutTextError(Exception):
    """Raises when it is asked for its text, as py4j's do after the JVM is gone."""

    def __str__(self) -> str:
        raise ConnectionError


def test_an_exception_without_a_text_is_recorded(telemetry: InMemory) -> None:
    """py4j fetches the text from the JVM, which may be gone: the span ends, and the exception is raised."""
    with pytest.raises(WithoutTextError), telemetry.run():
        raise WithoutTextError
    attributes = telemetry.spans["run etl.daily_sales"].events[0].attributes or {}
    assert attributes["exception.message"] == "(no message: str() raised ConnectionError)"


def test_a_step_started_on_another_thread_has_its_parent(telemetry: InMemory) -> None:
    """A thread does not inherit the current span; the run is the parent."""
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


def test_traceparent_names_the_step(telemetry: InMemory) -> None:
    """The header has the ids of the step that the files have."""
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
    """The runs of a traced scheduler are its children; the files have them even if it does not sample."""
    span = file_spans(child.folder / "run-1" / "traces.jsonl")["run etl.daily_sales"]
    assert (span["traceId"], span["parentSpanId"]) == ("ab" * 16, "cd" * 8)


def test_an_unsampled_span_is_not_sent(tmp_path: Path) -> None:
    """The decision of the parent is followed."""
    memory = InMemory(tmp_path, variables={"TRACEPARENT": f"00-{'ab' * 16}-{'cd' * 8}-00"})
    with memory.run():
        pass
    assert memory.spans == {}


def test_runs_in_turn_do_not_mix(telemetry: InMemory) -> None:
    """Each run's files have its own spans and figures only, gauges too, and its trace is its own."""
    with telemetry.run("first", pipeline="etl.customers") as run:
        run.record(rows_read=1)
        run.record_freshness("customers", seconds=1.0, as_of=END_OF_DAY)
    with telemetry.run("second") as run:
        run.record(rows_read=2)
    for run_id, pipeline in (("first", "etl.customers"), ("second", "etl.daily_sales")):
        spans = file_spans(telemetry.folder / run_id / "traces.jsonl")
        assert list(spans) == [f"run {pipeline}"]
        for metric in file_metrics(telemetry.folder / run_id / "metrics.jsonl"):
            ((_, data),) = [(key, value) for key, value in metric.items() if isinstance(value, dict)]
            assert {plain(point["attributes"])["pipeline.name"] for point in data["dataPoints"]} == {pipeline}
    assert len({span.get_span_context().trace_id for span in telemetry.spans.values()}) == 2  # type: ignore[union-attr]


def test_counters_and_histograms_are_deltas(finished: InMemory) -> None:
    """Each process starts at zero; a collector adds the deltas up."""
    temporality = {
        metric.data.aggregation_temporality.name
        for metric in finished.metrics
        if hasattr(metric.data, "aggregation_temporality")
    }
    assert temporality == {"DELTA"}


def test_a_good_run_has_no_errors(finished: InMemory) -> None:
    """A good run has no telemetry errors."""
    finished.telemetry.close()
    assert finished.telemetry.errors == []
