"""The log of a stream that runs for a month: files, memory and traces are bounded, and its end takes seconds."""

import gc
import json
import time
import tracemalloc
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.bridge import eviction
from spark_app.eventlog.bridge.batch_traces import MAX_SPANS
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model import stream_samples
from spark_app.eventlog.parse import repeated
from spark_app.eventlog.reader import Reading
from spark_app.observe.analysis import analyze
from spark_app.observe.followed_log import MEGABYTE, FollowedLog
from spark_app.settings import Settings, load_settings
from tests import storages
from tests.eventlogs.months import APPLICATION, Roller, Stream
from tests.polling import poll_until
from tests.receivers import Receiver, receiver

BATCHES: Final = 180
"""Of a month they are one in 1,430; all limits are scaled, so that each is reached: `tests/bench` has a whole month."""
FILE_BYTES: Final = 1 * MEGABYTE
LIMIT_MEGABYTES: Final = 4
SCALED: Final = (
    (eviction, "MAX_OF_STREAMS", 40),
    (eviction, "MAX_BARE", 50),
    (stream_samples, "MAX_SAMPLES", 32),
    (repeated, "MAX_STAGES", 40),
    (repeated, "MAX_LINES", 400),
)
STEP: Final = 15
"""Micro-batches between two looks at what is there."""


@dataclass
class Month:
    """What a stream has left.

    Attributes:
        sizes: Bytes of the log, after every few micro-batches.
        memory: Bytes of memory that our modules had allocated then.
        spans: The number of spans by trace, and of roots by trace.
        orphans: Spans of traces of micro-batches whose parents have not come by the end.
        reading: What is known at the end.
        end_seconds: How long the end took.
    """

    log: Path
    settings: Settings
    reading: Reading
    sizes: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    spans: Counter[bytes] = field(default_factory=Counter)
    orphans: int = 0
    end_seconds: float = 0


def drained(receiving: Receiver, month: Counter[bytes]) -> int:
    """Counts the spans that have come, and forgets them; returns how many have no parent there."""
    spans, receiving.spans[:] = list(receiving.spans), []
    month.update(span.trace_id for span in spans)
    ids = {(span.trace_id, span.span_id) for span in spans}
    return sum(bool(span.parent_span_id) and (span.trace_id, span.parent_span_id) not in ids for span in spans)


def traces_of(receiving: Receiver) -> set[bytes]:
    """The traces of which something has come."""
    return {span.trace_id for span in list(receiving.spans)}


def allocated() -> int:
    """Bytes that our modules have allocated, and not the receiver here, which keeps what it gets."""
    gc.collect()
    ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/spark_app/*")])
    return sum(statistic.size for statistic in ours.statistics("filename"))


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Month:
    """A stream whose log is followed, exported and compacted while it grows."""
    folder, stream, patch = tmp_path_factory.mktemp("month"), Stream(), pytest.MonkeyPatch()
    settings = load_settings(None)
    retention = settings.retention.model_copy(update={"stream_megabytes": LIMIT_MEGABYTES})
    settings = settings.model_copy(update={"home": folder, "retention": retention})
    roller = Roller(settings.events_path, file_bytes=FILE_BYTES)
    sizes, memory, spans, orphans = list[int](), list[int](), Counter[bytes](), 0
    roller.write(b"".join(line + b"\n" for line in stream.head))
    with receiver() as receiving, patch.context() as environment:
        for module, name, value in SCALED:
            environment.setattr(module, name, value)
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.http_endpoint)
        followed = FollowedLog(roller.log, settings, Thresholds())
        tracemalloc.start()
        for number in range(BATCHES):
            roller.write(stream.batch(number))
            if number % STEP == STEP - 1:
                # What is still in hand has bytes, too, and more of them the slower the machine is.
                poll_until(
                    lambda: len(traces_of(receiving)) > number,  # noqa: B023
                    lambda: f"{followed.batches} batches read, {len(traces_of(receiving))} sent, of {number + 1}",  # noqa: B023
                )
                sizes.append(sum(file.stat().st_size for file in roller.log.iterdir()))
                memory.append(allocated())
        tracemalloc.stop()
        roller.finish()
        began = time.monotonic()
        reading, unsent = followed.finish(patience=60)
        analyze(reading, settings, Thresholds()).page()
        ended = time.monotonic() - began
        assert unsent is None
        orphans = drained(receiving, spans)
    return Month(roller.log, settings, reading, sizes, memory, spans, orphans, ended)


def test_the_log_is_bounded(month: Month) -> None:
    """It is compacted again and again, and never larger than the limit and what came since the last look."""
    assert max(month.sizes) <= LIMIT_MEGABYTES * MEGABYTE + 150_000 * STEP + FILE_BYTES
    assert sum("compact" in file.name for file in month.log.iterdir()) == 1


def test_memory_does_not_grow(month: Month) -> None:
    """The least of the last third is no more than that of the second: what is in hand comes and goes.

    In the first third, what a report shows is filled.
    """
    third = len(month.memory) // 3
    assert min(month.memory[2 * third :]) <= min(month.memory[third : 2 * third]) + MEGABYTE / 2, month.memory


def test_each_batch_is_a_trace_with_a_bound(month: Month) -> None:
    """All of them have come, each whole, beside the trace of the application."""
    assert len(month.spans) == BATCHES + 1
    assert max(month.spans.values()) <= MAX_SPANS
    assert month.orphans == 0


def test_the_end_knows_the_whole_time(month: Month) -> None:
    """Each micro-batch is in the history of the query, and what is not kept is said."""
    (query,) = month.reading.app.streams.queries.values()
    assert sum(sample.batches for sample in query.history.all) == BATCHES
    assert len(query.history.all) <= 2 * 32
    assert len(month.reading.app.batches) + len(month.reading.app.queries) <= 50 + 130
    assert "older SQL execution" in month.reading.remarks[0]


def test_a_later_reader_of_the_log_knows_the_whole_time(month: Month) -> None:
    """A report that is asked for afterwards has the same histories, from the compact file."""
    later = reader.read(month.log)
    (query,), (then,) = later.app.streams.queries.values(), month.reading.app.streams.queries.values()
    assert sum(sample.batches for sample in query.history.all) == BATCHES
    rows = [sum(sample.rows or 0 for sample in each.history.all) for each in (query, then)]
    assert rows[0] == rows[1] > 0
    assert (later.app.id, later.app.name, later.app.started) == (
        month.reading.app.id, month.reading.app.name, month.reading.app.started,
    )  # fmt: skip
    assert later.unreadable_lines == later.read_errors.lost_files == later.read_errors.failed_events == 0
    assert later.app.left_out > BATCHES


def test_sparks_own_history_server_reads_the_log(month: Month, tmp_path: Path) -> None:
    """It knows the application, its executor and the jobs of the files that are left, and skips our line."""
    with storages.history_server(month.settings.events_path, tmp_path) as server:
        poll_until(lambda: storages.applications(server) == 1, "the application of the History Server")
        pages = {
            page: json.load(urlopen(f"{server}/api/v1/applications/{APPLICATION}/{page}"))
            for page in ("jobs", "sql?length=10000", "executors", "environment")
        }
    numbers = [job["jobId"] for job in pages["jobs"]]
    assert numbers == list(range(max(numbers), min(numbers) - 1, -1))
    assert (max(numbers), {job["status"] for job in pages["jobs"]}) == (BATCHES, {"SUCCEEDED"})
    assert len(pages["sql?length=10000"]) == 2 * len(numbers)
    assert [executor["id"] for executor in pages["executors"]] == ["driver"]
    assert dict(pages["environment"]["sparkProperties"])
