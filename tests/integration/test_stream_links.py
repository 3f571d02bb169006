"""A record is followed from its producer to the batch that reads it, and on to who reads what the batch sends."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow.dataset
import pytest

from spark_app.engine.tracing import SAMPLED
from spark_app.eventlog import reader, span_ids
from spark_app.eventlog.bridge import one_shot
from spark_app.eventlog.bridge.one_shot import LogExport
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.spans import SparkSpan
from spark_app.telemetry.errors import TelemetryErrors
from tests.eventlogs import linked
from tests.eventlogs.left import Log, left_by
from tests.receivers import Receiver, attributes, receiver


@dataclass(frozen=True)
class Run:
    """What the program has left: its log, the log's spans, and the header of each batch's records."""

    path: Path
    log: Log
    sent: dict[int, set[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of the program."""
    folder = tmp_path_factory.mktemp("linked")
    log, sent = left_by("linked", folder), dict[int, set[str]]()
    for row in pyarrow.dataset.dataset(folder / "sent", format="parquet").to_table().to_pylist():
        texts = [header["value"].decode() for header in row["headers"] if header["key"] == "traceparent"]
        sent.setdefault(row["batch"], set()).update(texts)
    return Run(next((folder / "logs").iterdir()), log, sent)


def finished(run: Run) -> list[SparkSpan]:
    """The spans of batches that were done."""
    batches = run.log.batches("linked")
    return [span for span in batches if "spark.streaming.batch.rows" in span.attributes][: linked.BATCHES]


def test_a_batch_links_to_a_sample_of_its_producers(run: Run) -> None:
    """Each of them has sent a record of the batch; all records with a context are counted, and a hostile one too."""
    for number, span in enumerate(finished(run)):
        first = number * linked.ROWS
        senders = {value + 1 for value in range(first, first + linked.ROWS, 2)}
        producers = [link for link in span.links if link.trace_id == link.span_id]
        assert {link.span_id for link in producers} <= senders - {1}
        assert span.attributes["spark.streaming.batch.records.traced"] == len(senders)
        assert SAMPLED - 1 <= len(producers) <= SAMPLED
        assert span.links_left_out == len(senders) - len(producers)


def test_a_batch_is_a_trace_that_links_to_the_batch_before(run: Run) -> None:
    """And to the application, where no step has started the query; all that it has run is below it."""
    first, second = finished(run)
    (root,) = (span for span in run.log.spans if span.kind.prefix == "application")
    assert {first.ids.parent_id, second.ids.parent_id} == {None}
    assert len({first.ids.trace_id, second.ids.trace_id, root.ids.trace_id}) == 3
    assert first.links[0][:2] == second.links[1][:2] == (root.ids.trace_id, root.ids.span_id)
    assert second.links[0][:2] == (first.ids.trace_id, first.ids.span_id)
    for batch in (first, second):
        below = list(run.log.below(batch.ids.span_id))
        assert {span.ids.trace_id for span in below} == {batch.ids.trace_id}
        assert {span.kind.prefix for span in below} == {"sql", "job", "stage", "task"}


def test_a_batch_without_a_job_links_to_the_step_that_started_its_query(run: Run) -> None:
    """Its SQL execution has the tag of that step."""
    spans = run.log.batches("idle")
    step = span_ids.context_of(linked.STEP)
    assert step is not None
    assert spans
    for span in spans:
        assert {below.kind.prefix for below in run.log.below(span.ids.span_id)} <= {"sql"}
        assert span.links[-1][:2] == step[:2]


def test_what_a_batch_sends_has_the_context_of_its_span(run: Run) -> None:
    """The running query has derived the ids that the log is given later."""
    for span in finished(run):
        (text,) = run.sent[int(span.attributes["spark.streaming.batch.id"])]
        assert span_ids.context_of(text) == (span.ids.trace_id, span.ids.span_id, 1)


def test_links_reach_the_collector(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the batch's spans, in one export of the log."""
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.http_endpoint)
        monkeypatch.setattr(one_shot, "STALLED_SECONDS", 60.0)
        export = LogExport(environment="test", thresholds=Thresholds(), patience=60.0, errors=TelemetryErrors())
        reader.read(run.path, make_listener=export.listener)
        assert export.finish()
    expected = {span.ids.span_id: {link.span_id for link in span.links} for span in finished(run)}
    assert received(receiving).items() >= expected.items()


def received(receiving: Receiver) -> dict[int, set[int]]:
    """The spans that each batch links to, by the id of its span."""
    batches = [span for span in receiving.spans if "spark.streaming.batch.id" in attributes(span)]
    return {int.from_bytes(span.span_id): {int.from_bytes(link.span_id) for link in span.links} for span in batches}
