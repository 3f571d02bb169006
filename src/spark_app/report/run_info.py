"""A spark-app run as its folder records it: run record, spans of its steps, log."""

import datetime
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from spark_app.errors import InputError
from spark_app.runs import column_lineage, model_card, run_record
from spark_app.runs.column_lineage import TableColumns
from spark_app.runs.model_card import CARD, ModelCard
from spark_app.runs.run_record import RECORD, RunRecord
from spark_app.telemetry.run_files import STARTED
from spark_app.telemetry.run_files_reader import LogLine, RunFilesReader, StepSpan
from spark_app.vocabulary import names
from spark_app.vocabulary.spark_names import MDC_STEP_TRACE_ID, MDC_TRACE_ID

WARNING: Final = 13
"""The least severity number of a warning; source: OpenTelemetry's logs data model."""
_LEVELS: Final = {"WARN": WARNING, "ERROR": 17, "FATAL": 21}


class _SparkLine(Struct):
    ts: datetime.datetime
    level: str
    msg: str = ""
    context: dict[str, str] = msgspec.field(default_factory=dict)
    logger: str = ""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run.

    Attributes:
        folder: Its folder.
        record: None if it was killed before it wrote one.
        steps: The spans of its steps.
        warnings: Warnings and errors of its log.
        unread: How many lines cannot be parsed.
        card: The model that it is about; None for a run about something else.
        trouble: Why there is no card, though there is a file.
        columns: By column of its tables the columns that it is computed from; none where the file cannot be read.
    """

    folder: Path
    record: RunRecord | None
    steps: list[StepSpan] = field(default_factory=list)
    warnings: list[LogLine] = field(default_factory=list)
    unread: int = 0
    card: ModelCard | None = None
    trouble: str | None = None
    columns: list[TableColumns] = field(default_factory=list)

    @property
    def trace_id(self) -> str | None:
        """The trace id in hexadecimal; None for a run that was not traced."""
        recorded = self.record.trace_id if self.record else None
        return recorded or next((step.trace_id for step in self.steps), None)

    @property
    def root(self) -> StepSpan | None:
        """The span of the run as a whole."""
        return next((step for step in self.steps if step.parent_id is None), None)

    @property
    def started(self) -> float | None:
        """Its start in milliseconds since the epoch."""
        if self.root is not None:
            return self.root.started
        return self.record.started_at.timestamp() * 1000 if self.record else None

    @property
    def ended(self) -> float | None:
        """Its end in milliseconds since the epoch; None for a killed run."""
        if self.root is not None and self.root.ended is not None:
            return self.root.ended
        return (
            None
            if self.record is None or self.is_running or self.started is None
            else self.started + self.record.seconds * 1000
        )

    @property
    def alone(self) -> tuple[float, float] | None:
        """Its time, in milliseconds since the epoch, if no other run of its application was in it; None if unknown."""
        if self.record is None or not self.record.is_alone or self.started is None or self.ended is None:
            return None
        return self.started, self.ended

    @property
    def is_running(self) -> bool:
        """Whether it recorded no end: it is running, or it was killed and is not marked so yet."""
        return self.record is None or self.record.outcome == "running"

    @property
    def title(self) -> str:
        """The pipeline and its slice."""
        if self.record is not None:
            return f"{self.record.pipeline} {self.record.slice}".rstrip()
        attributes = self.root.attributes if self.root else {}
        pipeline = attributes.get(names.PIPELINE.name, self.folder.name)
        return f"{pipeline} {attributes.get(names.RUN_SLICE.name, '')}".strip()

    def step_of(self, span_id: int | None) -> str | None:
        """The name of the step whose span this is."""
        return next((step.name for step in self.steps if step.span_id == span_id), None)


def read(folder: Path) -> RunInfo:
    """The run of a folder.

    Raises:
        InputError: The folder holds no run, or its record cannot be read.
    """
    lines, record = RunFilesReader(folder), run_record.read(folder) if (folder / RECORD).exists() else None
    steps = lines.steps()
    if record is None and not steps:
        raise InputError(f"{folder} is not a run folder: it has neither {RECORD} nor {STARTED}")
    own = [line for line in lines.logs() if line.level >= WARNING]
    info = RunInfo(folder, record, steps, unread=lines.skipped)
    spark = _spark_lines(Path(record.spark_log), info.trace_id) if record and record.spark_log else []
    card, trouble = _card(folder)
    warnings = sorted(own + spark, key=lambda line: line.time)
    return replace(info, warnings=warnings, card=card, trouble=trouble, columns=_columns(folder))


def _card(folder: Path) -> tuple[ModelCard | None, str | None]:
    """The model of a run, or why it cannot be read; neither for a run about something else."""
    if not (folder / CARD).exists():
        return None, None
    try:
        return model_card.read(folder), None
    except InputError as error:
        return None, str(error)


def _columns(folder: Path) -> list[TableColumns]:
    try:
        return column_lineage.read(folder)
    except InputError:
        return []


def _spark_lines(file: Path, trace_id: str | None) -> list[LogLine]:
    """Warnings and errors of Spark's own log of a trace, and of the micro-batches that it started."""
    decoder, warnings = msgspec.json.Decoder(_SparkLine), []
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            entry = decoder.decode(line)
        except ValueError:
            continue
        traces = [entry.context.get(key) for key in (MDC_TRACE_ID, MDC_STEP_TRACE_ID)]
        if entry.level in _LEVELS and trace_id and trace_id in traces:
            time = entry.ts.timestamp() * 1000
            warnings.append(LogLine(time, entry.level, _LEVELS[entry.level], entry.logger, entry.msg, None))
    return warnings
