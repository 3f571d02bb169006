"""Holds the spans of a micro-batch back until its own span has come: what is exported has its parents, and a bound."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from spark_app.eventlog.spans import SparkSpan
from spark_app.vocabulary.spark_names import BATCH_SPAN, BATCH_SPANS_LEFT_OUT, TASK_SPAN

MAX_SPANS: Final = 1000
"""Spans of one trace; a micro-batch of the shop has 20 to 150. Tasks take up to half of them."""
MAX_OPEN: Final = 400
"""Micro-batches whose spans are held at once; an application has one for each of its queries."""
MAX_ENDED: Final = 500
"""Micro-batches that are remembered after their ends: tasks that were killed end later."""


@dataclass(slots=True)
class _Trace:
    spans: list[SparkSpan] = field(default_factory=list)
    tasks: int = 0
    left_out: int = 0

    def hold(self, span: SparkSpan) -> None:
        is_task = span.kind is TASK_SPAN
        if len(self.spans) >= MAX_SPANS - 1 or (is_task and self.tasks >= MAX_SPANS // 2):
            self.left_out += 1
            return
        self.tasks += is_task
        self.spans.append(span)

    def below(self, root: SparkSpan) -> Iterator[SparkSpan]:
        """The spans whose parents are all there, each after its parent."""
        children = defaultdict[int | None, list[SparkSpan]](list)
        for span in self.spans:
            children[span.ids.parent_id].append(span)
        waiting = [root]
        while waiting:
            below = children.pop(waiting.pop().ids.span_id, [])
            waiting += below
            yield from below


class BatchTraces:
    """The traces of micro-batches on their way out; spans of other traces pass at once.

    An application that is killed leaves nothing of the micro-batch in hand: whoever sends it has sent no part of it.
    """

    def __init__(self, send: Callable[[SparkSpan], None]) -> None:
        """Nothing is held yet."""
        self._send = send
        self._open: dict[int, _Trace] = {}
        self._ended: dict[int, bool] = {}

    def put(self, span: SparkSpan) -> None:
        """Sends a span, or holds it until the span of its micro-batch comes."""
        trace = span.ids.trace_id
        if not span.ids.is_of_batch:
            self._send(span)
        elif span.kind is BATCH_SPAN:
            self._release(span)
        elif trace not in self._ended:
            self._hold(trace, span)
        elif self._ended[trace]:  # it ends after its micro-batch, and its parents were sent
            self._send(span)

    def _hold(self, trace: int, span: SparkSpan) -> None:
        self._open.setdefault(trace, _Trace()).hold(span)
        if len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]

    def _release(self, root: SparkSpan) -> None:
        trace = self._open.pop(root.ids.trace_id, _Trace())
        below = list(trace.below(root))
        left_out = trace.left_out + len(trace.spans) - len(below)
        said = {BATCH_SPANS_LEFT_OUT.name: left_out} if left_out else {}
        for span in (replace(root, attributes={**root.attributes, **said}), *below):
            self._send(span)
        self._ended[root.ids.trace_id] = not left_out
        if len(self._ended) > MAX_ENDED:
            del self._ended[next(iter(self._ended))]
