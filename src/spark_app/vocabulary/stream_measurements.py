"""What one micro-batch adds to the metrics of its query, and what it sets gauges to; what is unknown is left out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from spark_app.vocabulary import names
from spark_app.vocabulary.names import Attribute, Metric
from spark_app.vocabulary.spark_progress import Progress, sum_of_known


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value of a metric."""

    metric: Metric
    value: float
    labels: Mapping[Attribute, str] = field(default_factory=dict)


def measurements(progress: Progress) -> list[Measurement]:
    """The values of one micro-batch: those without labels, its phases, and the lag of its topics."""
    values = {
        names.STREAM_BATCHES: 1,
        names.STREAM_LAST_BATCH: progress.ended / 1000,
        names.STREAM_BATCH_DURATION: _seconds(progress.duration_ms),
        names.STREAM_INPUT_RATE: progress.input_rate,
        names.STREAM_PROCESSED_RATE: progress.processed_rate,
        names.STREAM_STATE_ROWS: sum_of_known(operator.rows for operator in progress.state),
        names.STREAM_STATE_MEMORY: sum_of_known(operator.memory_bytes for operator in progress.state),
        names.STREAM_STATE_COMMIT: _seconds(sum_of_known(operator.commit_ms for operator in progress.state)),
        names.STREAM_LATE: progress.rows_late,
        names.STREAM_WATERMARK_DELAY: _seconds(progress.watermark_delay_ms),
        names.STREAM_UNKNOWN_FIELDS: progress.unknown_fields,
    }
    known = [Measurement(metric, value) for metric, value in values.items() if value is not None]
    return [*known, *_phases(progress), *_lag(progress)]


def _phases(progress: Progress) -> Iterator[Measurement]:
    for key, milliseconds in progress.phases_ms.items():
        phase = key if key in names.STREAM_PHASES else "other"
        yield Measurement(names.STREAM_PHASE_DURATION, milliseconds / 1000, {names.PHASE: phase})


def _lag(progress: Progress) -> Iterator[Measurement]:
    for topic, records in (progress.lag or {}).items():
        yield Measurement(names.STREAM_LAG_RECORDS, records, {names.TOPIC: topic})


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
