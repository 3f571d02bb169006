"""Telemetry that keeps in memory what it would send."""

import datetime
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter
from opentelemetry.sdk.metrics.export import Metric, MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app.telemetry.export import Exporters
from app.telemetry.facts import RunFacts
from app.telemetry.problems import Problems
from app.telemetry.runs import Run
from app.telemetry.setup import Telemetry, resource

PROGRAM: Final = """
import datetime, os, resource, signal, sys
from pathlib import Path
from app.telemetry.facts import RunFacts
from app.telemetry.setup import start

telemetry = start(service_version="1", environment="test", application="shop")
facts = RunFacts("run-1", "0a1b2c3d4e5f", "etl.daily_sales", datetime.date(2024, 1, 1), Path(sys.argv[1]), "shop")
"""


class KeptMetrics(MetricExporter):
    """Keeps each collection."""

    def __init__(self) -> None:
        """Nothing kept yet."""
        super().__init__()
        self.kept: list[MetricsData] = []

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: object) -> MetricExportResult:
        """Keeps one."""
        self.kept.append(metrics_data)
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Nothing waits."""
        return True

    def shutdown(self, timeout_millis: float = 30_000, **_: object) -> None:
        """Nothing to end."""


@dataclass
class InMemory:
    """Telemetry whose exporters keep what they get; reading closes it."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    spans_kept: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    metrics_kept: KeptMetrics = field(default_factory=KeptMetrics)
    logs_kept: InMemoryLogRecordExporter = field(default_factory=InMemoryLogRecordExporter)

    def __post_init__(self) -> None:
        """Builds the telemetry."""
        self.telemetry = Telemetry(
            resource(service_version="1.2.3", environment="test", application="shop"),
            exporters=Exporters(self.spans_kept, self.metrics_kept, self.logs_kept),
            variables=self.variables,
            problems=Problems(),
        )

    def run(self, run_id: str = "run-1", *, pipeline: str = "etl.daily_sales") -> Run:
        """A run whose folder exists."""
        folder = self.folder / run_id
        folder.mkdir(exist_ok=True)
        return self.telemetry.run(RunFacts(run_id, "0a1b2c3d4e5f", pipeline, datetime.date(2024, 1, 1), folder, "shop"))

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
        found: dict[tuple[str, ...], float] = {}
        for metric in self.metrics:
            for point in metric.data.data_points if metric.name == name else ():
                labels = tuple(str(value) for _, value in sorted((point.attributes or {}).items()))
                value = getattr(point, "value", None)
                is_sum = hasattr(metric.data, "is_monotonic")
                amount = getattr(point, "count", 0) if value is None else value
                found[labels] = amount + (found.get(labels, 0) if is_sum else 0)
        return found


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
    found = {}
    for pair in attributes:
        ((kind, value),) = pair["value"].items()
        found[pair["key"]] = int(value) if kind == "intValue" else value
    return found


def process(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A process of its own that runs a program on a run's folder."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + program, str(folder)], check=False, capture_output=True, text=True, timeout=60
    )
