"""The spans of a log as they are exported one after another, and the rules that hold of the spans of every log."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from spark_app.eventlog import spans
from spark_app.eventlog.model.application import Application, Ended
from spark_app.eventlog.parse.log_tailer import LogTailer
from spark_app.eventlog.reader import Reader
from spark_app.eventlog.spans import SparkSpan

LATE_MS: Final = {"sql": 50, "job": 2000, "stage": 2000, "task": 60_000}
"""How far a span may reach out of the one above it, where Spark itself breaks the rule: a query that fails has ended
before its jobs are cancelled, a job before its stages, a stage before the tasks that it killed."""


def lines(log: Path) -> Iterator[bytes]:
    """The lines of a log."""
    with closing(LogTailer(log)) as tailer:
        yield from tailer.new()


def read(log: Path) -> tuple[Application, list[SparkSpan]]:
    """What a log says, and its spans in the order in which whoever follows it tells them."""
    return read_lines(lines(log))


def read_lines(lines: Iterable[bytes]) -> tuple[Application, list[SparkSpan]]:
    """The same of lines."""
    found = list[SparkSpan]()

    def take(app: Application, ended: Ended | None) -> None:
        found.extend([] if ended is None else spans.of_ended(app, ended))

    app = application(lines, take)
    return app, [*found, *spans.of_the_end(app)]


def application(
    lines: Iterable[bytes], take: Callable[[Application, Ended | None], object] = lambda _, __: None
) -> Application:
    """What lines say of an application; all of them can be read."""
    reader = Reader(Path("app-1"), listen=lambda _, ended: take(reader.app, ended))
    for line in lines:
        reader.take(line)
        assert not reader.unreadable_lines, line
        assert not reader.read_errors.failure, reader.read_errors.failure
    return reader.app


def assert_is_forest(app: Application, found: Iterable[SparkSpan]) -> None:
    """Every parent is there, nothing is exported twice, and nothing leaves its trace or the time of its parent."""
    broken = list(broken_rules(app, list(found)))
    assert not broken, broken


def broken_rules(app: Application, found: list[SparkSpan]) -> Iterator[str]:
    """What does not hold of the spans of a log, in words."""
    steps, by_id = steps_of(app), {span.ids.span_id: span for span in found}
    for number, times in Counter(span.ids.span_id for span in found).items():
        if times > 1:
            yield f"{by_id[number].name} is exported {times} times"
    yield from _unlinked(app, found)
    for span in found:
        parent = span.ids.parent_id
        if parent is None:
            yield from [] if span.kind.prefix in ("application", "batch", "session") else [f"{span.name} is a root"]
        elif parent in by_id:
            yield from _leaves(span, by_id[parent])
        elif (span.ids.trace_id, parent) not in steps:
            yield f"{span.name} is an orphan"


def _unlinked(app: Application, found: list[SparkSpan]) -> Iterator[str]:
    """Each batch has a trace of its own; of each streaming query all but the first link to the batch before."""
    batches = sorted((span for span in found if span.kind.prefix == "batch"), key=lambda span: span.started)
    before = dict[object, tuple[int, int]]()
    above = {*steps_of(app), *((span.ids.trace_id, span.ids.span_id) for span in found)}
    for span in batches:
        query, links = span.attributes["spark.streaming.query.id"], {link[:2] for link in span.links}
        if query in before and before[query] not in links:
            yield f"{span.name} does not link to the batch before it"
        if not links & (above - set(before.values())):
            yield f"{span.name} links neither to a step nor to the application"
        before[query] = (span.ids.trace_id, span.ids.span_id)
    for span in found:
        if (
            span.kind.prefix == "session"
            and span.ids.parent_id is None
            and not {link[:2] for link in span.links} & above
        ):
            yield f"{span.name} does not link to the application"
    if len({span.ids.trace_id for span in batches}) < len(batches):
        yield "batches share a trace"


def _leaves(span: SparkSpan, above: SparkSpan) -> Iterator[str]:
    late = LATE_MS.get(span.kind.prefix, 0) if above.failure or span.failure else 1
    if span.ids.trace_id != above.ids.trace_id:
        yield f"{span.name} is in another trace than {above.name}"
    if span.started < above.started:
        yield f"{span.name} starts {above.started - span.started} ms before {above.name}"
    if span.ended > above.ended + late:
        yield f"{span.name} ends {span.ended - above.ended} ms after {above.name}"


def steps_of(app: Application) -> set[tuple[int, int]]:
    """The spans that somebody else has made and named in a `traceparent` or a tag: their trace and their id."""
    named = {job.properties.traceparent for job in app.jobs.values()}
    named |= {query.traceparent for query in app.queries.values()}
    parts = [text.split("-") for text in named if text and text.count("-") == 3]
    return {(int(trace, 16), int(span, 16)) for _, trace, span, _ in parts}
