"""Turns the events of one application into spans with findings, and into totals."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

from spark_app.eventlog import spans
from spark_app.eventlog.bridge.batch_traces import BatchTraces
from spark_app.eventlog.bridge.metrics_aggregator import MetricsAggregator
from spark_app.eventlog.bridge.stream_periods import StreamPeriods
from spark_app.eventlog.diagnoses import diagnose
from spark_app.eventlog.diagnoses.judgement import FindingGroups
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.labels import NO_LABELS, LabelSources
from spark_app.eventlog.model.application import Application, Ended
from spark_app.eventlog.model.entities import Job, LateTask, Query, StageAttempt
from spark_app.eventlog.model.streams import Batch
from spark_app.eventlog.parse.events import Event, TaskEnd
from spark_app.eventlog.spans import SparkSpan, spanned_tasks
from spark_app.vocabulary.spark_names import APPLICATION_SPAN

OnSpan = Callable[[str, SparkSpan], None]


class EventProcessor:
    """Makes spans and totals of an application; it takes each event after the application took it.

    The spans of a micro-batch come together, when it has ended.

    Attributes:
        app: The application.
        aggregator: The totals so far.
        tasks, jobs: How many have ended; a task counts when it ends, which may be after its stage.
        tasks_suppressed: Tasks that are counted but get no span: they succeeded at once and were not the slowest.
        spans_suppressed: Spans of traces that are not sampled.
    """

    def __init__(
        self,
        app: Application,
        *,
        on_span: OnSpan,
        thresholds: Thresholds,
        labels: LabelSources = NO_LABELS,
    ) -> None:
        """Starts at the first event.

        Args:
            app: The application that takes the same events.
            on_span: Takes the name of the application, with its labels, and a span.
            thresholds: Thresholds of the diagnoses.
            labels: Where the labels of the application are.
        """
        self.app, self.aggregator = app, MetricsAggregator(app, labels=labels)
        self.tasks = self.jobs = self.tasks_suppressed = self.spans_suppressed = 0
        self._on_span, self._thresholds = on_span, thresholds
        self._groups, self._streams = FindingGroups(), StreamPeriods(app, thresholds)
        self._traces = BatchTraces(self._emit)
        self._reported: set[tuple[str, str]] = set()

    def take(self, event: Event, ended: Ended | None) -> None:
        """Counts one event, and sends the spans of what ended with it."""
        self.aggregator.take(event)
        self.tasks += isinstance(event, TaskEnd) and not event.is_resubmitted
        if ended is not None:
            self._take_ended(ended)

    def end(self) -> None:
        """Sends the spans of everything that is still open, marked incomplete, and the span of the application."""
        self.aggregator.stop()
        for finding in chain(diagnose.of_application(self.app, self._thresholds), self._streams.rest()):
            self._groups.add(finding)
        findings = tuple(self._groups.ranked(self.app, self._thresholds))
        self.aggregator.found(finding for finding in findings if (finding.rule, finding.cause) not in self._reported)
        open_stages = (stage for stage in self.app.stages.values() if stage.info.completed is None)
        self.tasks_suppressed += sum(map(_suppressed, open_stages))
        for span in spans.of_the_end(self.app):
            is_application = span.kind is APPLICATION_SPAN
            self._send(replace(span, findings=findings) if is_application else span)

    def _take_ended(self, ended: Ended) -> None:
        findings = tuple(self._worth_reporting(self._findings(ended)))
        self.aggregator.found(findings)
        for number, span in enumerate(spans.of_ended(self.app, ended)):
            self._send(replace(span, findings=findings) if findings and not number else span)
        self.jobs += isinstance(ended, Job)
        self.tasks_suppressed += _suppressed(ended)

    def _findings(self, ended: Ended) -> list[Finding]:
        match ended:
            case StageAttempt():
                return diagnose.of_stage(self.app, ended, self._thresholds)
            case Query():
                return diagnose.of_query(self.app, ended, self._thresholds)
            case Batch():
                return self._streams.ended(ended)
        return []

    def _worth_reporting(self, found: list[Finding]) -> Iterator[Finding]:
        """What costs enough alone, or makes its cause cost enough for the first time."""
        for finding in found:
            self._groups.add(finding)
            cause, key = self._groups.finding_of(finding, self.app, self._thresholds), (finding.rule, finding.cause)
            alone = FindingGroups([finding]).finding_of(finding, self.app, self._thresholds)
            reported = alone if alone is not None or key in self._reported else cause
            if reported is not None:
                yield reported
            if cause is not None:
                self._reported.add(key)

    def _send(self, span: SparkSpan) -> None:
        if span.ids.is_sampled:
            self._traces.put(span)
        else:
            self.spans_suppressed += 1

    def _emit(self, span: SparkSpan) -> None:
        self._on_span(self.aggregator.labelled_name, span)


def _suppressed(ended: Ended) -> int:
    """The tasks that ended with something and get no span."""
    match ended:
        case StageAttempt():
            return len(ended.durations_ms) - len(list(spanned_tasks(ended)))
        case LateTask():
            return 1 - len(list(spanned_tasks(ended)))
    return 0
