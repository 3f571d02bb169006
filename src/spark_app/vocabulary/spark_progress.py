"""What Spark reports about a trigger of a streaming query: its `StreamingQueryProgress` as JSON.

A listener and an event log write the same fields. In a log offsets are texts, and observed rows have their values apart
from the names; here both are alike. What Spark does not say is None, or missing.

- Lag in records: latest minus end offset, summed over the partitions of a topic, as only Kafka reports them.
- Lag in seconds: the age of the newest record that was read, by an observation `input <topic>` with a column `newest`;
  0 where nothing is unread.
- Watermark delay: the newest event time of the micro-batch minus the watermark that it was processed with. It is the
  configured delay while events arrive in time, and grows by a second per second while the watermark stands still.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from spark_app.vocabulary.names import ADD_BATCH

Number = TypeVar("Number", int, float)
WHOLE: Final = "triggerExecution"
"""The key of `durationMs` that is no phase: the whole trigger."""
INPUT: Final = "input "
"""How the name of an observation begins that counts what is read of a topic."""
EXPECTATIONS: Final = "expectations "
"""How the name of an observation begins that counts the rows that violate an expectation; a table follows."""
UNKNOWN_FIELDS: Final = "unknown_fields"
"""The column of an observation with the records that have fields which the schema of their topic does not know."""
CHECKED: Final = "checked"
"""Its column with the number of rows; each other column is an expectation."""
Milliseconds = Annotated[int, Meta(le=2**60)]
KafkaOffsets = dict[str, dict[str, int]]
_KAFKA_OFFSETS: Final = msgspec.json.Decoder(KafkaOffsets)


class SourceProgress(Struct, gc=False):
    """What was read of one source; offsets are what the source writes into the checkpoint, or that as an object."""

    description: str = ""
    start: Any = field(name="startOffset", default=None)
    end: Any = field(name="endOffset", default=None)
    latest: Any = field(name="latestOffset", default=None)
    rows: int | None = field(name="numInputRows", default=None)
    metrics: dict[str, Any] = field(default_factory=dict)

    @property
    def lag(self) -> dict[str, int] | None:
        """Records by topic that Kafka had and the micro-batch did not read; None for a source that does not say it."""
        read, there = offsets(self.end), offsets(self.latest)
        if read is None or there is None:
            return None
        return {
            topic: sum(max(0, latest - read[topic].get(partition, 0)) for partition, latest in partitions.items())
            for topic, partitions in there.items()
            if topic in read
        }


class StateOperatorProgress(Struct, gc=False):
    """What a stateful operator did in a micro-batch; times are sums over its tasks.

    Attributes:
        rows, memory_bytes: In the state after the micro-batch, over all partitions. Spark 4.0 reports 0 bytes where the
            memory of RocksDB is bounded (SPARK-48208), which stands for unknown: an empty store has some, too.
        updated, removed, dropped: Rows that the batch wrote, removed, and left out because they were too late. After a
            partial aggregation a row may stand for several records.
        partitions, stores: Of the state: a store for each partition, and several for a join.
    """

    name: str | None = field(name="operatorName", default=None)
    rows: int | None = field(name="numRowsTotal", default=None)
    updated: int | None = field(name="numRowsUpdated", default=None)
    removed: int | None = field(name="numRowsRemoved", default=None)
    dropped: int | None = field(name="numRowsDroppedByWatermark", default=None)
    updates_ms: int | None = field(name="allUpdatesTimeMs", default=None)
    removals_ms: int | None = field(name="allRemovalsTimeMs", default=None)
    commit_ms: int | None = field(name="commitTimeMs", default=None)
    memory_bytes: int | None = field(name="memoryUsedBytes", default=None)
    partitions: int | None = field(name="numShufflePartitions", default=None)
    stores: int | None = field(name="numStateStoreInstances", default=None)
    custom: dict[str, int] = field(name="customMetrics", default_factory=dict)

    def __post_init__(self) -> None:
        """Replaces the number that stands for none."""
        self.memory_bytes = self.memory_bytes or None

    @property
    def duplicates(self) -> int | None:
        """Rows that a deduplication dropped; None for another operator."""
        return self.custom.get("numDroppedDuplicateRows")


class SinkProgress(Struct, gc=False):
    """Where a micro-batch wrote to; a sink that does not count its rows reports -1 of them, which is None here."""

    description: str = ""
    rows: int | None = field(name="numOutputRows", default=None)

    def __post_init__(self) -> None:
        """Replaces the number that stands for none."""
        if self.rows is not None and self.rows < 0:
            self.rows = None


class Progress(Struct, gc=False):
    """What one trigger of a streaming query did.

    Attributes:
        durations_ms: Times in milliseconds by phase of the work, and of the whole; 0 where a clock was set back.
        event_time: The watermark, and the lowest, mean and highest event time that was read, as texts.
        state: The stateful operators.
        observed: What `DataFrame.observe` computed, by the name of the observation and of the column. A timestamp is
            text or a number in Unix time.
    """

    query: str = field(name="id")
    run: str = field(name="runId")
    triggered_at: datetime = field(name="timestamp")
    name: str | None = None
    batch: int = field(name="batchId", default=-1)
    batch_ms: Milliseconds | None = field(name="batchDuration", default=None)
    input_rows_per_second: float | str | None = field(name="inputRowsPerSecond", default=None)
    processed_rows_per_second: float | str | None = field(name="processedRowsPerSecond", default=None)
    durations_ms: dict[str, Milliseconds] = field(name="durationMs", default_factory=dict)
    event_time: dict[str, str] = field(name="eventTime", default_factory=dict)
    state: list[StateOperatorProgress] = field(name="stateOperators", default_factory=list)
    sources: list[SourceProgress] = field(default_factory=list)
    sink: SinkProgress | None = None
    observed: dict[str, dict[str, Any] | None] | None = field(name="observedMetrics", default=None)

    def __post_init__(self) -> None:
        """Makes what a listener and a log write differently alike."""
        self.durations_ms = {name: max(0, ms) for name, ms in self.durations_ms.items()}
        self.batch_ms = None if self.batch_ms is None else max(0, self.batch_ms)
        self.observed = {name: _row(row) for name, row in (self.observed or {}).items()}

    @property
    def has_batch(self) -> bool:
        """Whether a micro-batch ran; Spark also reports triggers that found nothing to do."""
        return ADD_BATCH in self.durations_ms

    @property
    def duration_ms(self) -> int | None:
        """How long it took; Spark before 3.1 logs only the duration of the trigger."""
        return self.durations_ms.get(WHOLE) if self.batch_ms is None else self.batch_ms

    @property
    def phases_ms(self) -> dict[str, int]:
        """Times by phase, without the whole."""
        return {name: ms for name, ms in self.durations_ms.items() if name != WHOLE}

    @property
    def overhead_ms(self) -> int:
        """The time outside of its SQL execution: for offsets, plans and checkpoints."""
        return sum(ms for name, ms in self.phases_ms.items() if name != ADD_BATCH)

    @property
    def started(self) -> int:
        """When it was triggered, in milliseconds since the epoch."""
        return _milliseconds(self.triggered_at)

    @property
    def ended(self) -> int:
        """When it ended, in milliseconds since the epoch."""
        return self.started + (self.duration_ms or 0)

    @property
    def input_rate(self) -> float | None:
        """Rows that came per second; 0 and `NaN` stand for unknown, as in a micro-batch without rows or the first."""
        return _rate(self.input_rows_per_second)

    @property
    def processed_rate(self) -> float | None:
        """Rows processed per second of work."""
        return _rate(self.processed_rows_per_second)

    @property
    def rows_read(self) -> int | None:
        """Rows of all sources; None where one does not say: a part of them would look like all."""
        rows = [source.rows for source in self.sources if source.rows is not None]
        return sum(rows) if rows and len(rows) == len(self.sources) else None

    @property
    def rows_written(self) -> int | None:
        """Rows that the sink counts, or else the column `rows` of an observation `written`."""
        counted = None if self.sink is None else self.sink.rows
        return self._observed_count("written") if counted is None else counted

    @property
    def rows_duplicate(self) -> int | None:
        """Rows dropped as duplicates, by the operators that drop them; None without one."""
        return sum_of_known(operator.duplicates for operator in self.state)

    @property
    def rows_late(self) -> int | None:
        """Rows dropped as too late; None without state, where nothing can be late."""
        return sum_of_known(operator.dropped for operator in self.state)

    @property
    def violations(self) -> int | None:
        """Violations by the rows of the micro-batch, over all expectations; None where no row was checked."""
        rows = [row for name, row in (self.observed or {}).items() if row and name.startswith(EXPECTATIONS)]
        checked = [row for row in rows if _count(row.get(CHECKED))]
        return sum_of_known(_count(value) for row in checked for name, value in row.items() if name != CHECKED)

    @property
    def unknown_fields(self) -> int | None:
        """Well-formed records with fields that the schema of their topic does not know; None if not observed."""
        return sum_of_known(_count(row.get(UNKNOWN_FIELDS)) for row in (self.observed or {}).values() if row)

    @property
    def lag(self) -> dict[str, int] | None:
        """Records by topic that Kafka had and the micro-batch did not read; None where no source says so."""
        lags = [lag for source in self.sources if (lag := source.lag) is not None]
        return {topic: records for lag in lags for topic, records in lag.items()} if lags else None

    def records_read(self, topic: str) -> int | None:
        """Records of a topic that were read, by the observation that counts them; None without one."""
        return _count(((self.observed or {}).get(f"{INPUT}{topic}") or {}).get("records"))

    @property
    def newest_records(self) -> Mapping[str, float | None]:
        """The timestamp of the newest record by observed topic, in Unix time; None where no record was read."""
        rows = [(name, row) for name, row in (self.observed or {}).items() if row and name.startswith(INPUT)]
        values = {name.removeprefix(INPUT): row["newest"] for name, row in rows if "newest" in row}
        return {
            topic: unix_time(value) for topic, value in values.items() if value is None or unix_time(value) is not None
        }

    @property
    def is_unread(self) -> Mapping[str, bool]:
        """Whether records were left unread, by topic, where that is known.

        A trigger takes records of each source that has any: of a topic without a record in the batch nothing is unread.
        """
        quiet = {topic: False for topic, newest in self.newest_records.items() if newest is None}
        return quiet | {topic: records > 0 for topic, records in (self.lag or {}).items()}

    @property
    def lag_seconds(self) -> dict[str, float]:
        """Seconds by topic from the newest record to the end of the micro-batch, 0 where nothing is unread.

        A timestamp in the future, as a wrong clock of a producer gives, says nothing about lag.
        """
        newest, is_unread = self.newest_records, self.is_unread
        ages = {
            topic: 0.0 if not is_unread.get(topic, True) else self.ended / 1000 - (newest[topic] or 0)
            for topic in newest
        }
        return {topic: age for topic, age in ages.items() if age >= 0}

    @property
    def watermark(self) -> int | None:
        """The watermark in milliseconds since the epoch; None without one, and before the first."""
        return self._event_time("watermark") or None

    @property
    def newest_event(self) -> int | None:
        """The highest event time that was read, in milliseconds since the epoch; None without rows."""
        return self._event_time("max")

    @property
    def mean_event(self) -> int | None:
        """The mean event time that was read, in milliseconds since the epoch; None without rows."""
        return self._event_time("avg")

    @property
    def watermark_delay_ms(self) -> int | None:
        """From the watermark to the newest event; None without events, and before the first watermark."""
        newest, watermark = self.newest_event, self.watermark
        return None if newest is None or watermark is None else newest - watermark

    def _event_time(self, name: str) -> int | None:
        try:
            return _milliseconds(datetime.fromisoformat(self.event_time[name]))
        except (KeyError, ValueError):
            return None

    def _observed_count(self, name: str) -> int | None:
        return _count(((self.observed or {}).get(name) or {}).get("rows"))


_PROGRESS: Final = msgspec.json.Decoder(Progress)


def parse(progress_json: str) -> Progress:
    """A progress from its JSON.

    Raises:
        msgspec.MsgspecError: It is no progress.
    """
    return _PROGRESS.decode(progress_json)


def offsets(offset: Any) -> KafkaOffsets | None:
    """Offsets of Kafka by topic and partition; None for those of other sources.

    Args:
        offset: What a source has written: the text of `{"topic":{"0":17}}`, or that as an object.
    """
    try:
        return _KAFKA_OFFSETS.decode(offset) if isinstance(offset, str) else msgspec.convert(offset, KafkaOffsets)
    except msgspec.DecodeError:  # of another source; a ValidationError is one, too
        return None


def _count(value: object) -> int | None:
    """A number of rows; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def sum_of_known(numbers: Iterable[Number | None]) -> Number | None:
    """The sum of what is known; None where nothing is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def unix_time(value: object) -> float | None:
    """A moment in Unix time, from that or from ISO 8601, in UTC unless it says otherwise; None for anything else."""
    if isinstance(value, str):
        with suppress(ValueError):
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        return None
    return float(value) if isinstance(value, int | float) else None


def _milliseconds(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def _rate(value: float | str | None) -> float | None:
    return value if isinstance(value, int | float) and value > 0 else None


def _row(row: dict[str, Any] | None) -> dict[str, Any]:
    """An observed row by the names of its columns; a log has a list of values, and a schema with the names.

    A log has timestamps in milliseconds. A row without a schema is empty.
    """
    row = row or {}
    if not {"values", "schema"} <= row.keys():
        return row
    try:
        logged = msgspec.convert(row, _LoggedRow)
    except msgspec.ValidationError:
        return {}
    columns = [] if logged.schema is None else logged.schema.fields
    return {column.name: column.of(value) for column, value in zip(columns, logged.values, strict=False)}


class _Column(Struct, gc=False):
    """A column of a logged row."""

    name: str
    type: Any = None

    def of(self, value: Any) -> Any:
        """A value of the column, in Unix time if it is a timestamp."""
        return value / 1000 if self.type == "timestamp" and isinstance(value, int | float) else value


class _Schema(Struct, gc=False):
    """The columns of a logged row."""

    fields: list[_Column] = field(default_factory=list)


class _LoggedRow(Struct, gc=False):
    """An observed row as Spark logs it."""

    values: list[Any]
    schema: _Schema | None = None
