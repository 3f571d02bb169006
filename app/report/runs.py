"""What the folder of a run of ours says: its record, its steps, its log; a killed run has left no record."""

import datetime
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from app import records
from app.errors import InputError
from app.records import RECORD, RunRecord
from app.telemetry import names
from app.telemetry.files import STARTED
from app.telemetry.lines import LogLine, RunLines, Step

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
    """A run of ours; without a record where it was killed before it wrote one; `steps` tell how far it came.

    `unread` lines of its files could not be read.
    """

    folder: Path
    record: RunRecord | None
    steps: list[Step] = field(default_factory=list)
    warnings: list[LogLine] = field(default_factory=list)
    unread: int = 0

    @property
    def trace_id(self) -> str | None:
        """Of its trace, in hexadecimal; None where nothing was traced."""
        told = self.record.trace_id if self.record else None
        return told or next((step.trace_id for step in self.steps), None)

    @property
    def root(self) -> Step | None:
        """The span of the run as a whole."""
        return next((step for step in self.steps if step.parent_id is None), None)

    @property
    def started(self) -> float | None:
        """When it started, in milliseconds since the epoch."""
        if self.root is not None:
            return self.root.started
        return self.record.started_at.timestamp() * 1000 if self.record else None

    @property
    def ended(self) -> float | None:
        """When it ended, in milliseconds since the epoch; None where it was killed."""
        if self.root is not None and self.root.ended is not None:
            return self.root.ended
        return (
            None
            if self.record is None or self.is_at_work or self.started is None
            else self.started + self.record.seconds * 1000
        )

    @property
    def is_at_work(self) -> bool:
        """Whether it has not told how it ended: it is at work, or was killed and nobody completed its record yet."""
        return self.record is None or self.record.outcome == "running"

    @property
    def title(self) -> str:
        """The pipeline and its day."""
        if self.record is not None:
            return f"{self.record.pipeline} {self.record.date}"
        told = self.root.attributes if self.root else {}
        return f"{told.get(names.PIPELINE.name, self.folder.name)} {told.get(names.RUN_DATE.name, '')}".strip()

    def step_of(self, span_id: int | None) -> str | None:
        """The name of the step that a span is, or is a part of."""
        by_id = {step.span_id: step for step in self.steps}
        found = by_id.get(span_id) if span_id is not None else None
        return found.name if found else None


def of(folder: Path) -> RunInfo:
    """The run whose folder this is.

    Raises:
        InputError: It is the folder of no run, or its record cannot be read.
    """
    lines, record = RunLines(folder), records.read(folder) if (folder / RECORD).exists() else None
    steps = lines.steps()
    if record is None and not steps:
        raise InputError(f"{folder} is no folder of a run: it has neither {RECORD} nor {STARTED}")
    own = [line for line in lines.logs() if line.level >= WARNING]
    info = RunInfo(folder, record, steps, unread=lines.skipped)
    spark = _spark_lines(Path(record.spark_log), info.trace_id) if record and record.spark_log else []
    return replace(info, warnings=sorted(own + spark, key=lambda line: line.time))


def _spark_lines(file: Path, trace_id: str | None) -> list[LogLine]:
    """What Spark itself warned of on behalf of a trace."""
    decoder, found = msgspec.json.Decoder(_SparkLine), []
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            told = decoder.decode(line)
        except ValueError:
            continue
        if told.level in _LEVELS and trace_id and told.context.get("mdc.trace_id") == trace_id:
            time = told.ts.timestamp() * 1000
            found.append(LogLine(time, told.level, _LEVELS[told.level], told.logger, told.msg, None))
    return found
