"""Sampling decides which spans are sent; the files of a run have every span."""

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace import sampling
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes


class RecordAllSampler(Sampler):
    """The sampler of `OTEL_TRACES_SAMPLER`; a span that it drops is recorded, but not sampled."""

    def __init__(self) -> None:
        """Reads the standard variables."""
        self._sampler = sampling._get_from_env_or_default()

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Records every span."""
        result = self._sampler.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)
        if result.decision is Decision.DROP:
            return SamplingResult(Decision.RECORD_ONLY, attributes, result.trace_state)
        return result

    def get_description(self) -> str:
        """The name of the sampler for the SDK."""
        return f"RecordAllSampler({self._sampler.get_description()})"
