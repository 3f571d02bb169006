"""How long an application would have taken with a change: its schedule, computed again with other slots or tasks.

Each stage begins as long after the stage that ended last before it as it did: the driver takes the same time. Its tasks
take the time that they took, one after another on the slots that are free. A time in which no task of the application
ran, as while it waits for an executor, is as long as it was, also within a stage. So what a change does to a task, such
as to its share of a disk or of memory, is not seen. The replay of what was gives an error, by which all are corrected.

After Sparklens (Qubole), which replays stages and tasks likewise and shows no error per application.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import hypot, sqrt
from statistics import mean, median, quantiles
from typing import Final, Literal, NamedTuple, get_args

from msgspec import Struct

from spark_app.eventlog.document import Ms, Name
from spark_app.eventlog.model import memory_settings
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.replay import blocked_time, limitations
from spark_app.eventlog.replay.schedule import Piece, replay
from spark_app.eventlog.replay.work import Part, Work
from spark_app.formatting import size
from spark_app.vocabulary.spark_settings import is_local, is_local_cluster

What = Literal["cores", "executors", "memory", "partitions", "without"]
UNLIMITED: Final = "unlimited"
PARTITIONS: Final = "spark.sql.shuffle.partitions"
ADAPTIVE: Final = ("spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled")
PARALLELISM: Final = "spark.default.parallelism"
MAX_CORES: Final = 1_000_000
DRIVER_SPREAD: Final = 0.15
"""How much longer or shorter the driver takes in the next run, in 90 % of the runs (`tests.bench what_if`)."""
TASK_SPREAD: Final = 0.05
"""The same of all tasks together."""
COMPUTING_SPREAD: Final = 0.2
"""The same of tasks that compute all the time, with another number of them at once or in all: they share caches, the
bandwidth of the memory, and the threads of garbage collection and the compiler (`tests.bench what_if`)."""
SPREAD_OF_90: Final = 1.645
"""How many standard deviations of a normal distribution have 90 % of it, on each side."""
IQR_OF_NORMAL: Final = 1.349
DISK_BYTES_PER_MS: Final = 125 * (1 << 20) / 1000
"""What a disk reads or writes, as for the diagnosis of spill: the baseline of an AWS gp3 volume."""


class Change(NamedTuple):
    """A change: `cores=8`, `executors=4`, `memory=8g`, `partitions=400`, `without=skew`."""

    what: What
    value: str

    def __str__(self) -> str:
        """As `--what-if` takes it."""
        return f"{self.what}={self.value}"


class Forecast(Struct, frozen=True):
    """How long it would have taken with a change such as `cores=8`: a replay, and at least and at most in nine of ten.

    `change_ratio` is the difference to what it took, as a share of it. All are null where the log does not tell;
    `reasons` say why.
    """

    change: Name
    ms: Ms | None
    low_ms: Ms | None
    high_ms: Ms | None
    change_ratio: float | None
    reasons: list[Name]


class _Lengths(NamedTuple):
    """The lengths of replays: the shortest that is possible, the likely one, the longest; in milliseconds."""

    low: float
    likely: float
    high: float


def parsed(text: str) -> Change:
    """The change that a text names.

    Raises:
        ValueError: It names none.
    """
    name, _, value = text.partition("=")
    for what in get_args(What):
        if name == what and _FORMS[what].fullmatch(value):
            return Change(what, value)
    raise ValueError(
        f"{text!r} is none of cores=N, executors=N, memory=SIZE (such as 8g), partitions=N and without=CAUSE "
        f"({', '.join(blocked_time.CAUSES)})"
    )


_NUMBER: Final = re.compile(r"[1-9]\d{0,5}", re.ASCII)
_FORMS: Final[Mapping[What, re.Pattern[str]]] = {
    "cores": re.compile(rf"{UNLIMITED}|{_NUMBER.pattern}", re.ASCII),
    "executors": _NUMBER,
    "memory": re.compile(r"[1-9]\d{0,6}[kmgt]b?", re.ASCII | re.IGNORECASE),
    "partitions": _NUMBER,
    "without": re.compile("|".join(blocked_time.CAUSES)),
}


def usual_changes(work: Work) -> list[Change]:
    """Half of the cores that there were, twice as many, and as many as tasks could ever use."""
    numbers = [round(work.cores * factor) for factor in (0.5, 2) if work.cores * factor >= 1]
    return [Change("cores", value) for value in (*map(str, numbers), UNLIMITED)]


class _Variation(NamedTuple):
    """How much runs of an application differ, as shares: of the driver's time, of that of tasks, of waits of these."""

    driver: float
    tasks: float
    waits: float


def forecasts(work: Work, changes: Iterable[Change]) -> list[Forecast]:
    """How long it would have taken with each of some changes."""
    reasons, variation = limitations.of_changes(work), _variation(work)
    return [_forecast(work, change, reasons, variation) for change in changes]


def _forecast(work: Work, change: Change, reasons: list[str], variation: _Variation) -> Forecast:
    """How long it would have taken with a change, or why the log does not tell."""
    found = reasons or _KINDS[change.what](work, change.value)
    if isinstance(found, list):
        return Forecast(str(change), None, None, None, None, found)
    low, likely, high = (work.corrected(ms) for ms in found)
    low, high = _interval(work, low, high, variation, is_slower=likely > work.took_ms)
    return Forecast(str(change), likely, min(low, likely), max(high, likely), likely / work.took_ms - 1, [])


def _interval(work: Work, low: float, high: float, variation: _Variation, *, is_slower: bool) -> tuple[float, float]:
    """How long it takes at least and at most, in nine of ten cases.

    Tasks may wait less for processors where fewer of them run.
    """
    driver, (drift, apart, waited) = min(work.idle_ms, low), variation
    least = driver * max(0.0, 1 - drift) + (low - driver) * max(0.0, 1 - apart - (waited if is_slower else 0.0))
    return least, driver * (1 + drift) + (high - driver) * (1 + apart)


def _variation(work: Work) -> _Variation:
    """How much the driver's time and that of tasks differ from run to run.

    Tasks differ also by what their own spread and the error of the replay say, and by what they compute. On a host that
    something else used both differ more: the driver by all that it lost to that, and tasks by what they waited for
    processors.
    """
    waited, busy = limitations.contention_ratio(work), limitations.processors_per_task(limitations.stages(work), work)
    computing = COMPUTING_SPREAD * (1.0 if busy is None else min(1.0, busy))
    apart = hypot(TASK_SPREAD, _spread_of_tasks(work), work.error, waited, computing)
    return _Variation(hypot(DRIVER_SPREAD, 1 - 1 / limitations.slowdown(work)), apart, waited)


def _spread_of_tasks(work: Work) -> float:
    """How far the sum of the tasks of a stage may be off, if they were drawn anew; the mean over all stages.

    By the quartiles of the task times, so that a skewed task, which is no accident, does not count.
    """
    parts = [part.piece.durations for part in work.parts]
    total = sum(map(sum, parts))
    weighted = sum(_spread(durations) * sum(durations) for durations in parts if len(durations) > 3)
    return weighted / total if total else 0.0


def _spread(durations: Sequence[float]) -> float:
    """The spread of the mean of some times, as a share of it."""
    low, _, high = quantiles(durations, n=4)
    usual = mean(durations)
    return SPREAD_OF_90 * (high - low) / IQR_OF_NORMAL / sqrt(len(durations)) / usual if usual else 0.0


def on_cores(work: Work, cores: int | None) -> float:
    """How long the same tasks take on so many cores, or on one for each of them, as the replay has it."""
    pieces = [part.piece for part in work.parts]
    if cores is None:
        return replay(pieces, None, work.start, work.end).ms
    return work.replayed(pieces, _slots(work, cores)).ms


def _slots(work: Work, cores: int) -> list[float]:
    """When each slot of so many cores is there: as those that there were, in the same shares."""
    count = min(_slot_count(work, cores), work.most_slots)
    return [work.free[index * len(work.free) // count] for index in range(count)]


def _slot_count(work: Work, cores: int) -> int:
    """How many tasks so many cores run at a time: executors of three cores run one task of two each."""
    return max(1, cores * len(work.free) // work.cores)


def _cores(work: Work, value: str) -> _Lengths | list[str]:
    """The same tasks on other slots; stages with a task for each core may have one for each of the new ones."""
    if value == UNLIMITED:
        ms = on_cores(work, None)
        return _Lengths(ms, ms, ms)
    cores = int(value)
    reasons = list(limitations.of_processors(work, cores))
    if reasons:
        return reasons
    same = on_cores(work, cores)
    if cores < work.cores and is_local(work.app.properties):
        saved, free = COMPUTING_SPREAD * limitations.used_ratio(work), _slots(work, cores)
        alone, likely = (
            work.replayed([_alone(work, part, ratio) for part in work.parts], free).ms
            for ratio in (1 - saved, 1 - saved / 2)
        )
        return _Lengths(alone, likely, same)
    count = _slot_count(work, cores)
    following = {id(part) for part in work.parts if _follows_cores(work, part)}
    if not following:
        return _Lengths(same, same, same)
    pieces = [_divided(part, count) if id(part) in following else part.piece for part in work.parts]
    other = work.replayed(pieces, _slots(work, cores)).ms
    return _Lengths(min(same, other), other, max(same, other))


def _alone(work: Work, part: Part, ratio: float) -> Piece:
    """The same tasks where fewer of them share a host: without a wait for a processor, and what is left by a ratio."""
    works = ratio * (1 - limitations.processor_wait_ratio(work, part.stage))
    return part.lasting([ms * works for ms in part.piece.durations])


def _executors(work: Work, value: str) -> _Lengths | list[str]:
    """As many executors, each with the cores that the others have."""
    if is_local(work.app.properties):
        return ["a local master has no executors: ask for cores"]
    if is_local_cluster(work.app.properties.get("spark.master", "")):
        return ["all executors of local-cluster share one host, whose processors they also need to start"]
    cores = [each.cores for each in work.app.executors.values()]
    return _cores(work, str(min(MAX_CORES, max(1, round(median(cores))) * int(value))))


def _partitions(work: Work, value: str) -> _Lengths | list[str]:
    """The work of stages behind a shuffle in other tasks; each takes the overhead that the log shows."""
    own = [part for part in work.parts if _partitions_of(work, part.stage) == len(part.stage.durations_ms)]
    merged = [part for part in work.parts if _is_merged(work, part.stage)]
    count = int(value)
    if merged:
        return [f"adaptive execution merges partitions: {PARTITIONS} is only the most that there may be"]
    if not own:
        return [f"no stage has as many tasks as {PARTITIONS} says"]
    places = {id(part) for part in own}
    even, uneven = (
        work.replayed(
            [_divided(part, count, keep=keep) if id(part) in places else part.piece for part in work.parts]
        ).ms
        for keep in (False, True)
    )
    return _Lengths(min(even, uneven), even, max(even, uneven))


def _memory(work: Work, value: str) -> _Lengths | list[str]:
    """More memory may end garbage collection and spilling; what less of it does is not in the log."""
    asked, heap = memory_settings.size_of(value), memory_settings.heap(work.app.properties)
    own, name = limitations.stages(work), memory_settings.memory(work.app.properties)
    if asked is None or heap is None:
        return [f"{name} is no size"]
    if asked < heap:
        return [f"the log does not say what tasks do with less memory than {size(heap)} ({name})"]
    spilled = sum(stage.totals.disk_spilled for stage in own)
    waits = {id(stage): _memory_waits(stage) for stage in own}
    least = work.replayed([part.without(waits[id(part.stage)]) for part in work.parts]).ms
    likely = (least + work.own.ms) / 2 if spilled else work.own.ms
    return _Lengths(least, likely, work.own.ms)


def _memory_waits(stage: StageAttempt) -> Sequence[float]:
    """What each task spent on garbage collection and, by its share of the time, on spilling."""
    total = sum(stage.durations_ms)
    share = min(1.0, 2 * stage.totals.disk_spilled / DISK_BYTES_PER_MS / total) if total else 0.0
    return [gc + ms * share for gc, ms in zip(stage.waits_for("gc"), stage.durations_ms, strict=True)]


def _without(work: Work, value: str) -> _Lengths | list[str]:
    """The schedule without a cause; without skew, tasks may also take the mean, if others take over the work."""
    cause = next(each for each in blocked_time.CAUSES if each == value)
    pieces = blocked_time.without(work, cause)
    if pieces is None:
        return [f"tasks did not wait for {cause}, or Spark did not measure it"]
    ms = work.replayed(pieces).ms
    if cause != "skew":
        return _Lengths(ms, ms, ms)
    means = [part.lasting([mean(part.piece.durations)] * len(part.places)) for part in work.parts]
    even = work.replayed(means).ms
    return _Lengths(min(ms, even), ms, max(ms, even))


_KINDS: Final[Mapping[What, Callable[[Work, str], _Lengths | list[str]]]] = {
    "cores": _cores,
    "executors": _executors,
    "memory": _memory,
    "partitions": _partitions,
    "without": _without,
}


def _divided(part: Part, count: int, *, keep: bool = False) -> Piece:
    """The work of a piece in so many tasks, in its order; each has the overhead that the tasks of the stage had.

    Args:
        part: The piece.
        count: How many tasks.
        keep: Whether the longest task keeps its work, as that of one key does.
    """
    durations, overhead = part.piece.durations, _overhead_ms(part.stage)
    work = [max(0.0, ms - overhead) for ms in durations]
    most = max(work)
    scale = len(work) / count
    tasks = [_between(work, number * scale, (number + 1) * scale) for number in range(count)]
    if keep and count > len(work):
        rest = 1 - (most - max(tasks)) / sum(work) if sum(work) else 1.0
        longest = tasks.index(max(tasks))
        tasks = [most if number == longest else ms * rest for number, ms in enumerate(tasks)]
    return part.lasting([ms + overhead for ms in tasks])


def _between(work: Sequence[float], since: float, until: float) -> float:
    """The work of the tasks between two places of the order, of the first and the last one in part."""
    first, last = int(since), min(int(until), len(work) - 1)
    if first >= last:
        return work[min(first, len(work) - 1)] * (until - since)
    return work[first] * (first + 1 - since) + sum(work[first + 1 : last]) + work[last] * (until - last)


def _overhead_ms(stage: StageAttempt) -> float:
    """What a task takes before and after its work: the scheduler and deserialising; the median of the stage."""
    return median(map(sum, zip(stage.waits_for("scheduling"), stage.waits_for("deserializing"), strict=True)))


def _follows_cores(work: Work, part: Part) -> bool:
    """Whether a stage has as many tasks as there are cores because there are so many.

    So has one that begins with rows that Spark makes or with small files, and one whose partitions adaptive execution
    has merged: both take `spark.default.parallelism`, which is the number of cores where it is not set.
    """
    stage = part.stage
    if PARALLELISM in work.app.properties or len(stage.durations_ms) != len(work.free):
        return False
    return not stage.info.parents or _is_merged(work, stage)


def _partitions_of(work: Work, stage: StageAttempt) -> int | None:
    """How many partitions a shuffle of SQL has that a stage reads, by the settings; None for no such stage."""
    settings = _settings(work, stage)
    if settings is None or not stage.info.parents:
        return None
    given = settings.get(PARTITIONS, "200")
    return int(given) if given.isdecimal() else None


def _is_merged(work: Work, stage: StageAttempt) -> bool:
    """Whether adaptive execution has merged partitions that a stage reads."""
    settings, partitions = _settings(work, stage), _partitions_of(work, stage)
    if settings is None or partitions is None:
        return False
    is_adaptive = all(settings.get(name, "true").strip().lower() == "true" for name in ADAPTIVE)
    return is_adaptive and len(stage.durations_ms) < partitions


def _settings(work: Work, stage: StageAttempt) -> Mapping[str, str] | None:
    """The settings of the query of a stage; None where it runs for none."""
    query = work.app.query_of(work.app.job_of(stage))
    return None if query is None else work.app.properties | query.settings
