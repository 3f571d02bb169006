"""What a run and a step have in common: a span that is the current one until it ends."""

import time
from collections.abc import Mapping, Sequence
from contextvars import Token

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, Status, StatusCode, Tracer

from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.exceptions import described, type_of
from spark_app.vocabulary import names
from spark_app.vocabulary.names import Attribute


class SpanScope:
    """A block of code with a span around it."""

    def __init__(self, errors: TelemetryErrors) -> None:
        """The span has not started."""
        self.errors = errors
        self._span: Span = trace.INVALID_SPAN
        self._token: Token[Context] | None = None
        self._started = time.monotonic()

    @property
    def trace_id(self) -> str | None:
        """The id of the trace, 32 hexadecimal digits; None when telemetry is off."""
        span_context = self._span.get_span_context()
        return trace.format_trace_id(span_context.trace_id) if span_context.is_valid else None

    @property
    def span_id(self) -> str | None:
        """The id of the span, 16 hexadecimal digits; None when telemetry is off."""
        span_context = self._span.get_span_context()
        return trace.format_span_id(span_context.span_id) if span_context.is_valid else None

    @property
    def traceparent(self) -> str | None:
        """The W3C header that makes spans of other programs children of this span; None when telemetry is off."""
        flags = self._span.get_span_context().trace_flags
        return f"00-{self.trace_id}-{self.span_id}-{flags:02x}" if self.trace_id else None

    @property
    def seconds(self) -> float:
        """The time since the span started."""
        return time.monotonic() - self._started

    def start_span(
        self, tracer: Tracer, name: str, parent: Context, attributes: Mapping[str, str], *, links: Sequence[Link] = ()
    ) -> Context:
        """Starts the span and makes it the current one; returns its context."""
        self._span = tracer.start_span(name, parent, attributes=attributes, links=links)
        own = trace.set_span_in_context(self._span, parent)
        self._token = context.attach(own)
        self._started = time.monotonic()
        return own

    def end_span(self, error: BaseException | None) -> None:
        """Ends the span, with the exception that ended it."""
        if error is not None:
            self._span.add_event(names.EXCEPTION_EVENT, described(error))
            self._span.set_status(Status(StatusCode.ERROR, type_of(error)))
        self._span.end()

    def detach_span(self) -> None:
        """Restores the current span of before."""
        if self._token is not None:
            context.detach(self._token)
            self._token = None

    def set_counts(self, counts: Mapping[Attribute, float | str | None]) -> None:
        """Sets the known ones as attributes; an unknown one stays absent, since 0 would be a claim."""
        for attribute, value in counts.items():
            if value is not None:
                self._span.set_attribute(attribute.name, attribute.type(value))
