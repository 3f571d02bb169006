"""What the runs of a process share: where their telemetry is sent, and the thread that flushes them."""

import threading
from dataclasses import dataclass, field
from functools import partial

from opentelemetry.context import Context
from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import Tracer

from spark_app.telemetry.delivery import Deliveries, RunDelivery, metrics_key
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import Claim, MetricSender
from spark_app.telemetry.flushing import PeriodicFlush
from spark_app.telemetry.instruments import Measurements
from spark_app.telemetry.run_files import SEGMENT_BYTES, FileSpanProcessor, RunFiles
from spark_app.vocabulary import names


@dataclass(frozen=True, slots=True)
class ProcessExport:
    """Built once per process by `setup`.

    Attributes:
        resource: Who reports.
        parent: The context that `TRACEPARENT` of the environment names.
        sampler: Decides which spans are sent.
        spans: Sends spans; None without an endpoint.
        metrics: Sends metrics; None without an endpoint.
        flushing: Flushes the open runs.
        deliveries: What the endpoint accepted of each run.
        errors: The telemetry errors of the process.
        writes_files: Whether runs write files; False where OpenTelemetry is disabled.
        segment_bytes: The size at which a file of a run is rotated.
        collecting: Held from a collection of metrics until it is queued: the runs of a process may share series, and
            a collector drops a point that is older than the last one of its series.
    """

    resource: Resource
    parent: Context
    sampler: Sampler
    spans: SpanProcessor | None
    metrics: MetricSender | None
    flushing: PeriodicFlush
    deliveries: Deliveries
    errors: TelemetryErrors
    writes_files: bool
    segment_bytes: int = SEGMENT_BYTES
    collecting: threading.Lock = field(default_factory=threading.Lock)

    def tracer(self, files: RunFiles | None) -> Tracer:
        """The tracer of one run, whose spans go to the files of that run and to the network."""
        provider = TracerProvider(self.sampler, self.resource, shutdown_on_exit=False)
        if files is not None:
            provider.add_span_processor(FileSpanProcessor(files))
        if self.spans is not None:
            provider.add_span_processor(self.spans)
        return provider.get_tracer(names.SCOPE)

    def export_metrics(self, measurements: Measurements, files: RunFiles | None) -> None:
        """Writes and sends what one run measured since the last time."""
        with self.collecting:
            metrics: MetricsData | None = measurements.collect()
            if metrics is None:
                return
            if files is not None:
                files.write_metrics(metrics)
            delivery = files.delivery if files is not None else None
            if self.metrics is not None:
                self.metrics.send(metrics, _claim(delivery, metrics))


def _claim(delivery: RunDelivery | None, metrics: MetricsData) -> Claim | None:
    """Notes that metrics are sent."""
    return None if delivery is None else partial(delivery.note, "metrics", [metrics_key(metrics)])
