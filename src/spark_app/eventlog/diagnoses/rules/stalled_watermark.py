"""A watermark that stands still while batches read newer and newer rows."""

from dataclasses import dataclass, field
from typing import Final

from spark_app.eventlog.diagnoses.rule import Alert, Limit, rule
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.stream_samples import StreamSample
from spark_app.formatting import count, duration
from spark_app.redaction import excerpt
from spark_app.vocabulary.spark_progress import sum_of_known

POLICY: Final = "spark.sql.streaming.multipleWatermarkPolicy"
MAX_SOURCE: Final = 80


@rule(
    adds=("batches",),
    limits={
        "stalled_batches": Limit(
            10,
            "Stalled watermark: batches with newer rows and the same watermark, at least.",
            ge=1,
        ),
        "stalled_event_ms": Limit(300_000.0, "Stalled watermark: how much newer these rows are, at least.", ge=0),
    },
    alert=Alert(
        "SparkStreamStateGrowing",
        "In the last hour of {application} a streaming query kept what it no longer needs.",
    ),
)
def stalled_watermark(view: StreamView) -> Finding | None:
    """A watermark that stands still while batches read newer and newer rows.

    Evidence: the batches, how much newer the rows got, and the sources that brought none.
    Why: windows do not close, so that nothing is written in append mode, and state grows.
    Change: find out why the source is idle; `spark.sql.streaming.multipleWatermarkPolicy=max` follows the fastest
        source, and drops what the others bring later; or send heartbeats. Spark's watermark of one source is the
        highest event time in it less the delay, so that an idle partition of a topic does not hold it back, while an
        idle source of several does.
    Threshold: {stalled_batches} batches whose event times get newer by {stalled_event_ms} (project).
    Cost: not estimated.
    """
    stall = _longest_stall(view)
    if stall is None:
        return None
    idle = [number for number, rows in enumerate(stall.source_rows) if rows == 0]
    names = _sources(view, idle)
    policy = view.settings.get(POLICY, "min")
    why = f"; no rows came from {names}" if names else ""
    wanted = f"Find out why nothing comes from {names}. " if names else ""
    return view.finding(
        "stalled_watermark",
        f"its watermark did not move in {count(stall.batches)} batches with rows, while their event time went on by "
        f"{duration(stall.event_ms)}{why}",
        advice=f"{wanted}{POLICY} is {excerpt(policy, 20)}: with min, the slowest source holds the watermark of all; "
        "max takes the highest one, and drops what the others bring later. Or send heartbeats through idle sources.",
        numbers={"stalled_batches": stall.batches, "longest_stall_ms": stall.event_ms},
    )


@dataclass(slots=True)
class _Stall:
    """Batches with newer and newer rows and one watermark; times are those of events."""

    watermark: int | None
    first: int
    newest: int
    batches: int = 0
    source_rows: list[int | None] = field(default_factory=list)

    @property
    def event_ms(self) -> int:
        """How much newer the last rows were than the first ones."""
        return self.newest - self.first

    def add(self, sample: StreamSample, newest: int) -> None:
        """Adds batches with the same watermark."""
        self.batches += sample.batches - sample.empty
        self.newest = max(self.newest, newest)
        if len(self.source_rows) == len(sample.source_rows):
            self.source_rows = list(map(sum_of_known, zip(self.source_rows, sample.source_rows, strict=True)))
        else:
            self.source_rows = list(sample.source_rows)


def _longest_stall(view: StreamView) -> _Stall | None:
    """The longest time in which the watermark stood still; None where it was too short to matter."""
    stalls: list[_Stall] = []
    for sample in view.samples:
        if sample.newest is None:
            continue
        is_same = stalls and stalls[-1].watermark == sample.watermark and sample.first_watermark == sample.watermark
        if not is_same:
            stalls.append(_Stall(sample.watermark, sample.newest, sample.newest))
        stalls[-1].add(sample, sample.newest)
    longest = max(stalls, key=lambda stall: stall.event_ms, default=None)
    if longest is None or longest.event_ms < view.limits.stalled_event_ms:
        return None
    return longest if longest.batches >= view.limits.stalled_batches else None


def _sources(view: StreamView, numbers: list[int]) -> str:
    """The names of sources: `FileStreamSource[file:/landing/orders]`."""
    known = view.query.progress.sources if view.query.progress else []
    return ", ".join(excerpt(known[number].description, MAX_SOURCE) for number in numbers if number < len(known))
