"""How a streaming query gets on, in a file of its run: `spark-app streaming status` reads it from another process."""

import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from spark_app.local_files import ensure_dir, new_locked_file, try_lock, write_atomic
from spark_app.runs.liveness import is_running
from spark_app.runs.run_record import PUBLISHED
from spark_app.vocabulary.names import StreamState
from spark_app.vocabulary.spark_progress import Progress, sum_of_known
from spark_app.vocabulary.stream_lag import Lag

LOG: Final = logging.getLogger(__name__)
STATUS: Final = "stream.json"
ANNOUNCED: Final = ".starting-"
"""How the name of a file begins that names the queries of a process, which holds its lock."""
BATCHES: Final = "batches"
RESTARTS: Final = "restarts"
LAG_RECORDS: Final = "lag_records"
LAG_SECONDS: Final = "lag_seconds"
"""The facts about a streaming query in the record of its run."""


@dataclass(frozen=True)
class StreamStatus:
    """A streaming query and its last micro-batch; None stands for what is unknown.

    Attributes:
        pipeline: `streaming.events`.
        state: What the query does.
        run_id: The name of the folder of its run.
        application_id: Spark's.
        started_at: When the run started, in Unix time.
        updated_at: When the state was written, in Unix time.
        counts: Rows since the start of the run by what became of them, as in its record; missing if unknown.
        batches: Micro-batches since the start of the run.
        restarts: Restarts since the start of the run.
        input_rate: Records that came per second, by the last micro-batch.
        processed_rate: Records processed per second of the last micro-batch.
        output_rate: Rows written per second of the last micro-batch.
        batch_ms: Duration of the last micro-batch, in milliseconds.
        lag_records: Records that Kafka has and no micro-batch has read, over all topics, by its last answer.
        lag_seconds: The age of the oldest of them, 0 without one. Of files, which no broker counts: from the
            newest that was read to the end of the last micro-batch, 0 where the last trigger found none.
        watermark: The watermark of the last micro-batch, ISO 8601.
        state_rows: Rows that the query remembers.
        error: Why it restarts or failed, in one line.
    """

    pipeline: str
    state: StreamState
    run_id: str = ""
    application_id: str = ""
    started_at: float = 0
    updated_at: float = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    batches: int = 0
    restarts: int = 0
    input_rate: float | None = None
    processed_rate: float | None = None
    output_rate: float | None = None
    batch_ms: int | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None
    watermark: str | None = None
    state_rows: int | None = None
    error: str | None = None


def progressed(status: StreamStatus, progress: Progress, counts: Mapping[str, int]) -> StreamStatus:
    """The status after a micro-batch.

    Args:
        status: The status before.
        progress: What Spark reports about the micro-batch.
        counts: Rows of the run so far, with those of the micro-batch.
    """
    lag = progress.lag
    return replace(
        status,
        counts=dict(counts),
        batches=status.batches + 1,
        input_rate=progress.input_rate,
        processed_rate=progress.processed_rate,
        output_rate=_output_rate(status, progress, counts),
        batch_ms=progress.duration_ms,
        lag_records=None if lag is None else sum(lag.values()),
        lag_seconds=max(progress.lag_seconds.values(), default=None),
        watermark=None if progress.watermark is None else progress.event_time["watermark"],
        state_rows=sum_of_known(operator.rows for operator in progress.state),
    )


def idle(status: StreamStatus) -> StreamStatus:
    """The status of a query that has found nothing to read: it has no rates, and no lag in whatever unit is known."""
    rates = replace(status, input_rate=None, processed_rate=None, output_rate=None)
    return replace(rates, lag_records=0, lag_seconds=0.0) if status.batches else status


def lagging(status: StreamStatus, lag: Lag | None, now: float) -> StreamStatus:
    """The status of a query that reads Kafka, with what its brokers say by now.

    Args:
        status: The status before.
        lag: What the query has not read; None if that is not known.
        now: The Unix time.
    """
    if lag is None:
        return replace(status, lag_records=None, lag_seconds=None)
    return replace(status, lag_records=lag.total, lag_seconds=lag.longest_seconds(now))


def _output_rate(status: StreamStatus, progress: Progress, counts: Mapping[str, int]) -> float | None:
    """Also of queries whose functions write, and count what they wrote, where Spark reports none."""
    if PUBLISHED not in counts or not progress.duration_ms:
        return None
    return 1000 * (counts[PUBLISHED] - status.counts.get(PUBLISHED, 0)) / progress.duration_ms


def facts(status: StreamStatus) -> dict[str, float]:
    """What the record of a run keeps about its query, beside counts of rows; what is unknown is missing."""
    known = {
        BATCHES: status.batches,
        RESTARTS: status.restarts,
        LAG_RECORDS: status.lag_records,
        LAG_SECONDS: status.lag_seconds,
    }
    return {name: value for name, value in known.items() if value is not None}


def write(folder: Path, status: StreamStatus) -> None:
    """Replaces the status in the folder of a run atomically; one that cannot be written is logged."""
    try:
        write_atomic(folder / STATUS, msgspec.json.encode(status))
    except OSError as error:
        LOG.warning("cannot write the status of the query: %s", error.strerror)


@contextmanager
def announced(runs: Path, queries: Sequence[str]) -> Iterator[None]:
    """Lets other processes know queries whose runs begin later: Spark starts, then one query after another."""
    file = ensure_dir(runs) / f"{ANNOUNCED}{secrets.token_hex(6)}"
    with new_locked_file(file):
        file.write_text("\n".join(queries), encoding="utf-8")
        yield


def running(runs: Path) -> list[StreamStatus]:
    """The status of each query whose process lives and that has not ended, in the order of their names.

    A query that was announced, and whose run has not begun since, is starting.
    """
    files = list(runs.glob(f"*/{STATUS}"))
    statuses = [_read(file) for file in files if is_running(file.parent)]
    for at, queries in _announcements(runs):
        begun = {status.pipeline for status in map(_read, files) if status.started_at >= at}
        statuses += [StreamStatus(name, "starting", started_at=at) for name in queries if name not in begun]
    return sorted(statuses, key=lambda status: (status.pipeline, status.run_id))


def _announcements(runs: Path) -> Iterator[tuple[float, Sequence[str]]]:
    """When processes that live announced queries, in Unix time, and which; the file of a killed process goes."""
    for file in runs.glob(f"{ANNOUNCED}*"):
        try:
            with try_lock(file) as is_locked:
                if is_locked:
                    file.unlink(missing_ok=True)
                else:
                    yield file.stat().st_mtime, file.read_text(encoding="utf-8").split()
        except OSError:  # it is gone by now, or of another user
            continue


def _read(file: Path) -> StreamStatus:
    return msgspec.json.decode(file.read_bytes(), type=StreamStatus)
