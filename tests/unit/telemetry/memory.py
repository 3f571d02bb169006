"""Telemetry that keeps in memory what it would send."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter
from opentelemetry.sdk.metrics.export import Metric, MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import Exporters
from spark_app.telemetry.resend import QUIET_SECONDS
from spark_app.telemetry.run_files import SEGMENT_BYTES
from spark_app.telemetry.run_identity import RunIdentity
from spark_app.telemetry.run_telemetry import RunTelemetry
from spark_app.telemetry.setup import Telemetry, resource

PROGRAM: Final = """
import os, resource, signal, sys
from pathlib import Path
from spark_app.telemetry.run_files import SEGMENT_BYTES
from spark_app.telemetry.run_identity import RunIdentity
from spark_app.telemetry.setup import start

telemetry = start(service_version="1", environment="test", application="shop")
identity = RunIdentity("run-1", "0a1b2c3d4e5f", "etl.daily_sales", "2024-01-01", Path(sys.argv[1]), "shop")
"""


class KeptMetrics(MetricExporter):
    """Keeps each collection."""

    def __init__(self) -> None:
        """Nothing kept yet."""
        super().__init__()
        self.kept: list[MetricsData] = []
        self.result = MetricExportResult.SUCCESS
        self.asked = 0

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: object) -> MetricExportResult:
        """Keeps one, counts an empty one, and answers as it is set to."""
        if metrics_data.resource_metrics:
            self.kept.append(metrics_data)
        else:
            self.asked += 1
        return self.result

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Nothing waits."""
        return True

    def shutdown(self, timeout_millis: float = 30_000, **_: object) -> None:
        """Nothing to end."""


@dataclass
class InMemory:
    """Telemetry whose exporters keep what they get; the properties close it first, and the end of a test does."""

    opened: ClassVar[list["InMemory"]] = []
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    flush_seconds: float = 3600
    segment_bytes: int = SEGMENT_BYTES
    spans_kept: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    metrics_kept: KeptMetrics = field(default_factory=KeptMetrics)
    logs_kept: InMemoryLogRecordExporter = field(default_factory=InMemoryLogRecordExporter)

    def __post_init__(self) -> None:
        """Builds the telemetry."""
        self.telemetry = Telemetry(
            resource(service_version="1.2.3", environment="test", application="shop"),
            exporters=Exporters(self.spans_kept, self.metrics_kept, self.logs_kept),
            variables=self.variables,
            errors=TelemetryErrors(),
            flush_seconds=self.flush_seconds,
            segment_bytes=self.segment_bytes,
        )
        self.opened.append(self)

    def run(self, run_id: str = "run-1", *, pipeline: str = "etl.daily_sales") -> RunTelemetry:
        """A run whose folder exists."""
        folder = self.folder / run_id
        folder.mkdir(exist_ok=True)
        return self.telemetry.run(RunIdentity(run_id, "0a1b2c3d4e5f", pipeline, "2024-01-01", folder, "shop"))

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        """The spans that were sent, by name."""
        self.telemetry.close()
        return {span.name: span for span in self.spans_kept.get_finished_spans()}

    @property
    def logs(self) -> list[ReadableLogRecord]:
        """The log records that were sent."""
        self.telemetry.close()
        return list(self.logs_kept.get_finished_logs())

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that were sent, collection by collection."""
        self.telemetry.close()
        return [
            metric
            for data in self.metrics_kept.kept
            for resource_metrics in data.resource_metrics
            for scope in resource_metrics.scope_metrics
            for metric in scope.metrics
        ]

    def values(self, name: str) -> dict[tuple[str, ...], float]:
        """The values of a metric by its labels, in the order of their names: added up, of a gauge the last."""
        values: dict[tuple[str, ...], float] = {}
        for metric in self.metrics:
            for point in metric.data.data_points if metric.name == name else ():
                labels = tuple(str(value) for _, value in sorted((point.attributes or {}).items()))
                value = getattr(point, "value", None)
                is_sum = hasattr(metric.data, "is_monotonic")
                amount = getattr(point, "count", 0) if value is None else value
                values[labels] = amount + (values.get(labels, 0) if is_sum else 0)
        return values


def lines(path: Path) -> list[dict[str, Any]]:
    """What each line of a JSON Lines file holds."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def file_spans(path: Path) -> dict[str, dict[str, Any]]:
    """The spans in a file of OTLP JSON Lines, by name."""
    return {
        span["name"]: span
        for line in lines(path)
        for resource_spans in line["resourceSpans"]
        for scope in resource_spans["scopeSpans"]
        for span in scope["spans"]
    }


def file_metrics(path: Path) -> list[dict[str, Any]]:
    """The metrics in a file of OTLP JSON Lines."""
    return [
        metric
        for line in lines(path)
        for resource_metrics in line["resourceMetrics"]
        for scope in resource_metrics["scopeMetrics"]
        for metric in scope["metrics"]
    ]


def file_logs(path: Path) -> list[dict[str, Any]]:
    """The log records in a file of OTLP JSON Lines."""
    return [
        record
        for line in lines(path)
        for resource_logs in line["resourceLogs"]
        for scope in resource_logs["scopeLogs"]
        for record in scope["logRecords"]
    ]


def plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    """Attributes in OTLP JSON as plain values; its integers are strings there."""
    values = {}
    for pair in attributes:
        ((kind, value),) = pair["value"].items()
        values[pair["key"]] = int(value) if kind == "intValue" else value
    return values


def process(program: str, folder: Path, *, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, with the folder of a run and a time limit."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + program, str(folder)],
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def messages(folder: Path) -> list[tuple[str, str]]:
    """The run id and the text of each log record in the folder of a run."""
    return [
        (plain(record["attributes"])["pipeline.run.id"], record["body"]["stringValue"])
        for record in file_logs(folder / "logs.jsonl")
    ]


def total(folder: Path, name: str) -> int:
    """The sum of a counter in the folder of a run."""
    metrics = [metric for metric in file_metrics(folder / "metrics.jsonl") if metric["name"] == name]
    return sum(int(point["asInt"]) for metric in metrics for point in metric["sum"]["dataPoints"])


def leave_metrics(runs: Path) -> None:
    """A run in a folder, whose metrics were not accepted, and that has been quiet for long enough to be sent later."""
    away = KeptMetrics()
    away.result = MetricExportResult.FAILURE
    telemetry = InMemory(runs, metrics_kept=away)
    with telemetry.run() as run:
        run.record(rows_read=5)
    telemetry.telemetry.close()
    for file in (runs / "run-1").glob("*.jsonl"):
        os.utime(file, (0, time.time() - QUIET_SECONDS - 1))
