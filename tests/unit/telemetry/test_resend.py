"""What the endpoint has not accepted is sent later, once, with the same ids."""

import contextvars
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spark_app.telemetry import crash_recovery, delivery
from spark_app.telemetry.delivery import DELIVERY, note, noted
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import Exporters
from spark_app.telemetry.otlp_client import OtlpClient
from spark_app.telemetry.resend import QUIET_SECONDS, Resent, resend, undelivered
from spark_app.telemetry.run_telemetry import RunTelemetry
from spark_app.vocabulary import names
from tests.unit.telemetry.memory import InMemory, KeptMetrics, file_logs, file_metrics, file_spans


class Refusing(KeptMetrics):
    """An endpoint for metrics that answers nothing, or not any more after some requests."""

    def __init__(self, *, accepts: int = 0) -> None:
        """Accepts so many requests."""
        super().__init__()
        self.accepts = accepts

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **more: object) -> MetricExportResult:
        """Refuses."""
        self.accepts -= 1
        self.result = MetricExportResult.SUCCESS if self.accepts >= 0 else MetricExportResult.FAILURE
        return super().export(metrics_data, timeout_millis, **more)


class RefusingSpans(InMemorySpanExporter):
    """An endpoint for spans that accepts nothing."""

    def export(self, spans: Any) -> SpanExportResult:
        """Refuses."""
        return SpanExportResult.FAILURE


def finished_run(folder: Path, **exporters: Any) -> InMemory:
    """A run of two steps that sent its telemetry, or tried to."""
    telemetry = InMemory(folder, **exporters)
    with telemetry.run() as run:
        for step in ("read", "write bronze"):
            with run.step(step, kind="write", table="bronze"):
                pass
        run.record(rows_read=10, rows_written={"bronze": 10})
    telemetry.telemetry.close()
    return telemetry


def client(later: InMemory) -> OtlpClient:
    """The endpoint, when it is back."""
    return OtlpClient(Exporters(later.spans_kept, later.metrics_kept, later.logs_kept), errors=TelemetryErrors())


def counted(metrics: list[Any]) -> Counter[tuple[object, ...]]:
    """What counters and histograms add up to, by their labels."""
    totals = Counter[tuple[object, ...]]()
    for metric in metrics:
        for point in metric.data.data_points if hasattr(metric.data, "aggregation_temporality") else ():
            labels = tuple(sorted((point.attributes or {}).items()))
            totals[(metric.name, *labels)] += int(getattr(point, "count", 0) or getattr(point, "value", 0))
    return totals


def test_a_run_whose_endpoint_takes_everything_leaves_nothing(tmp_path: Path) -> None:
    """The file that says what is left is removed."""
    finished_run(tmp_path)
    assert not (tmp_path / "run-1" / DELIVERY).exists()
    assert undelivered(tmp_path, quiet_seconds=0) == []


def test_what_was_sent_while_the_collector_was_away_arrives_later_once(tmp_path: Path) -> None:
    """The same spans, sums and log records as of a run whose collector was there; the second time there is nothing."""
    (tmp_path / "good").mkdir()
    good = finished_run(tmp_path / "good")
    away = finished_run(tmp_path, metrics_kept=Refusing(), spans_kept=RefusingSpans())
    assert (away.metrics_kept.asked, away.metrics_kept.kept) == (1, []), "it is asked once, and nothing is tried"
    (folder,) = undelivered(tmp_path, quiet_seconds=0)
    later = InMemory(tmp_path)
    resent = resend(folder, client(later))
    assert (resent.is_complete, resent.spans, resent.unsure) == (True, 3, 0)
    stored = file_spans(folder / "traces.jsonl")
    sent = later.spans_kept.get_finished_spans()
    assert {format(span.context.span_id, "016x") for span in sent} == {span["spanId"] for span in stored.values()}
    assert counted(later.metrics) == counted(good.metrics)
    assert undelivered(tmp_path, quiet_seconds=0) == []
    assert resend(folder, client(later)) == Resent()


def test_gauges_keep_their_times_and_counters_get_the_time_of_sending(tmp_path: Path) -> None:
    """A collector drops a count that is older than the last; a later run may have set a newer gauge."""
    finished_run(tmp_path, metrics_kept=Refusing())
    began, later = time.time_ns(), InMemory(tmp_path)
    resend(tmp_path / "run-1", client(later))
    times: dict[bool, list[int]] = {True: [], False: []}
    for metric in later.metrics:
        is_gauge = not hasattr(metric.data, "aggregation_temporality")
        times[is_gauge] += [point.time_unix_nano for point in metric.data.data_points]
    assert max(times[True]) < began < min(times[False]) + 2_000_000
    ends = [
        point.time_unix_nano
        for metric in later.metrics
        if metric.name == names.RUNS.name
        for point in metric.data.data_points
    ]
    assert len(set(ends)) > 2


def test_an_old_gauge_is_in_no_request_with_a_counter(tmp_path: Path) -> None:
    """Prometheus refuses a whole request for one gauge that is older than it takes."""
    finished_run(tmp_path, metrics_kept=Refusing())
    later = InMemory(tmp_path)
    resend(tmp_path / "run-1", client(later))
    requests = [
        {hasattr(metric.data, "aggregation_temporality") for scope in group.scope_metrics for metric in scope.metrics}
        for request in later.metrics_kept.kept
        for group in request.resource_metrics
    ]
    assert sorted(map(len, requests)) == [1] * len(requests)
    assert set().union(*requests) == {True, False}


def test_metrics_whose_answer_is_missing_are_not_sent_again(tmp_path: Path) -> None:
    """They may have arrived. The empty request before them was accepted, and theirs was not."""
    finished_run(tmp_path)
    away = finished_run(tmp_path, metrics_kept=Refusing(accepts=1))
    folder = tmp_path / "run-1"
    assert len(away.metrics_kept.kept) == 1
    later = InMemory(tmp_path)
    resent = resend(folder, client(later))
    lines = len((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    assert 0 < resent.metrics < lines


def test_a_collector_that_goes_away_again_gets_the_rest_the_next_time(tmp_path: Path) -> None:
    """What it took is not sent twice, and what it may have taken neither."""
    finished_run(tmp_path, metrics_kept=Refusing(), spans_kept=RefusingSpans())
    folder, half, rest = tmp_path / "run-1", InMemory(tmp_path, metrics_kept=Refusing(accepts=4)), InMemory(tmp_path)
    first = resend(folder, client(half))
    assert (first.is_complete, first.spans) == (False, 3)
    second = resend(folder, client(rest))
    assert (second.is_complete, second.spans) == (True, 0)
    lines = len((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    assert first.metrics + first.unsure + second.metrics == lines


def test_a_run_that_still_writes_is_left_to_its_process(tmp_path: Path) -> None:
    """Until nothing was written for a while."""
    finished_run(tmp_path, metrics_kept=Refusing())
    assert undelivered(tmp_path) == []
    for file in (tmp_path / "run-1").glob("*.jsonl"):
        os.utime(file, (0, time.time() - QUIET_SECONDS - 1))
    assert undelivered(tmp_path) == [tmp_path / "run-1"]


def test_metrics_that_another_process_sends_are_not_sent_by_the_run(tmp_path: Path) -> None:
    """The run may be suspended between the question and the request."""
    telemetry = InMemory(tmp_path)
    noting = telemetry.telemetry._deliveries.start("run-1", tmp_path)
    assert noting is not None
    noting.expect("metrics", 7)
    note(tmp_path, "metrics", [7])
    assert not noting.note("metrics", [7])
    assert 7 in noted(tmp_path)["metrics"]


def test_what_a_run_of_months_notes_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was delivered long ago is one time in the file; what still waits is never done with, nor what is new."""
    monkeypatch.setattr(delivery, "MAX_BYTES", 4096)
    noting = delivery.RunDelivery(tmp_path, ("spans", "metrics"), errors=TelemetryErrors())
    now, largest = time.time_ns(), 0
    keys = [now - 3 * delivery.LATE_NS + number for number in range(3000)]
    noting.expect("spans", 5)
    for key in keys:
        noting.expect("metrics", key)
        if key != keys[2000]:
            assert noting.note("metrics", [key])
        largest = max(largest, (tmp_path / DELIVERY).stat().st_size)
    assert largest < 60_000  # of those after the one that waits, each is named
    done = noted(tmp_path)
    assert [key for key in keys if key not in done["metrics"]] == [keys[2000]]
    assert now not in done["metrics"]
    assert 5 not in done["spans"]


def began(run: RunTelemetry) -> None:
    """A run that has read rows, and is not over."""
    run.__enter__()
    with run.step("read", kind="read"):
        pass
    run.record(rows_read=10)
    run.export_metrics()


def test_the_end_of_a_killed_run_is_sent_once(tmp_path: Path) -> None:
    """Whoever finds the run sends its end at once; what the run itself could not send follows."""
    away = InMemory(tmp_path, metrics_kept=Refusing(), spans_kept=RefusingSpans())
    contextvars.copy_context().run(began, away.run())  # whose span stays current: the run does not end
    away.telemetry.close()  # the process ends here
    folder, later = tmp_path / "run-1", InMemory(tmp_path)
    assert crash_recovery.end(folder, client(later).send, errors=TelemetryErrors()) is not None
    assert resend(folder, client(later)).is_complete
    sent = [span.name for span in later.spans_kept.get_finished_spans()]
    assert sorted(sent) == ["run etl.daily_sales", "step read"]
    totals = counted(later.metrics)
    assert totals[names.READ.name, (names.PIPELINE.name, "etl.daily_sales")] == 10
    outcomes = ((names.PIPELINE.name, "etl.daily_sales"), (names.OUTCOME.name, "killed"))
    assert totals[names.RUNS.name, *outcomes] == 1
    groups = [group for data in later.metrics_kept.kept for group in data.resource_metrics]
    assert len({frozenset(group.resource.attributes.items()) for group in groups}) == 1, "the end is in another series"


def test_a_torn_line_is_no_obstacle(tmp_path: Path) -> None:
    """As a power cut leaves one, in the files of the run and in that of its delivery."""
    finished_run(tmp_path, metrics_kept=Refusing(), spans_kept=RefusingSpans())
    folder = tmp_path / "run-1"
    for name in ("traces.jsonl", "metrics.jsonl", "logs.jsonl", DELIVERY):
        with (folder / name).open("a") as file:
            file.write('{"resource')
    assert resend(folder, client(InMemory(tmp_path))).is_complete


@pytest.mark.parametrize("kind", ["traces.jsonl", "metrics.jsonl", "logs.jsonl"])
def test_the_files_of_the_run_are_not_changed(tmp_path: Path, kind: str) -> None:
    """They are the record of the run."""
    finished_run(tmp_path, metrics_kept=Refusing(), spans_kept=RefusingSpans())
    before = (tmp_path / "run-1" / kind).read_bytes()
    resend(tmp_path / "run-1", client(InMemory(tmp_path)))
    assert (tmp_path / "run-1" / kind).read_bytes() == before
    assert file_metrics(tmp_path / "run-1" / "metrics.jsonl")
    assert isinstance(file_logs(tmp_path / "run-1" / "logs.jsonl"), list)
