"""What a run and a step have in common: a span around them, noted when it starts and when it ends."""

import time
from collections.abc import Mapping
from contextvars import Token
from dataclasses import dataclass

from opentelemetry import context, trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from app.telemetry import names
from app.telemetry.exceptions import described, type_of
from app.telemetry.export import MetricSender
from app.telemetry.files import Current
from app.telemetry.names import Attribute
from app.telemetry.problems import Problems


@dataclass(frozen=True, slots=True)
class Engine:
    """What a run is told with; built once per process by `setup`."""

    tracer: Tracer
    parent: context.Context
    resource: Resource
    sender: MetricSender | None
    current: Current
    problems: Problems
    writes_files: bool


class Spanned:
    """Something with a span around it, which is the current one until it ends."""

    def __init__(self, engine: Engine) -> None:
        """Nothing is started yet."""
        self.engine = engine
        self._span: Span = trace.INVALID_SPAN
        self._token: Token[context.Context] | None = None
        self._began = time.monotonic()

    @property
    def trace_id(self) -> str | None:
        """The id of the trace, 32 hexadecimal digits; None when telemetry is off."""
        found = self._span.get_span_context()
        return trace.format_trace_id(found.trace_id) if found.is_valid else None

    @property
    def span_id(self) -> str | None:
        """The id of the span, 16 hexadecimal digits; None when telemetry is off."""
        found = self._span.get_span_context()
        return trace.format_span_id(found.span_id) if found.is_valid else None

    @property
    def traceparent(self) -> str | None:
        """The W3C header that makes others children of this span; None when telemetry is off."""
        flags = self._span.get_span_context().trace_flags
        return f"00-{self.trace_id}-{self.span_id}-{flags:02x}" if self.trace_id else None

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return time.monotonic() - self._began

    def start_span(self, name: str, parent: context.Context | None, attributes: Mapping[str, str]) -> None:
        """Starts the span and makes it the current one."""
        self._span = self.engine.tracer.start_span(name, parent, attributes=attributes)
        self._token = context.attach(trace.set_span_in_context(self._span, parent))
        self._began = time.monotonic()

    def stop_span(self, error: BaseException | None) -> None:
        """Ends the span, with the exception that ended it."""
        if error is not None:
            self._span.add_event(names.EXCEPTION_EVENT, described(error))
            self._span.set_status(Status(StatusCode.ERROR, type_of(error)))
        self._span.end()

    def leave_span(self) -> None:
        """Makes the span that was current before the current one again."""
        if self._token is not None:
            context.detach(self._token)
            self._token = None

    def set_counts(self, counts: Mapping[Attribute, int | str | None]) -> None:
        """Sets what is known; what is not known stays absent, for 0 would be a claim."""
        for attribute, value in counts.items():
            if value is not None:
                self._span.set_attribute(attribute.name, attribute.type(value))
