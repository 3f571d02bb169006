"""Splits the difference between two runs into amounts of wall-clock time by cause, which add up to it.

Groups of stages are matched by their work. The changed time of each group is split in this order: repeated work; more
or less input, at the earlier time per row; more or fewer cores, for the remaining work; then what tasks did with their
time (spill, CPU, garbage collection, shuffle, Python, storage, other waiting, scheduling), and idle cores. Where the
plan distributes rows in another way, or the number of tasks changed, that change gets what the distribution of rows
determines: CPU, shuffle, scheduling, waiting and idle cores.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from msgspec.structs import astuple, replace

from spark_app.eventlog.comparison.plan_changes import PlanChange, plan_changes
from spark_app.eventlog.comparison.profile import RunProfile, StageGroup, TaskTime, Volume, Wall, merged

Kind = Literal[
    "input", "skew", "cores", "executors", "retries", "spill", "gc", "plan", "storage", "python", "machine", "queueing",
    "tasks", "processor", "shuffle", "scheduling", "balance", "driver", "startup", "new", "gone",
]  # fmt: skip
NO_GROUP: Final = StageGroup("", "", Wall(), TaskTime(), Volume())
EQUAL_RATIO: Final = 0.02
"""Figures that differ by less than this ratio count as equal. Project."""
OTHER_TASKS: Final = 1.5
"""From this ratio of tasks per stage on, the partitioning is different. Project."""
SKEWED: Final = 1.5
"""Skew: the ratio of the longest to the median task, or its share of the data, grew by this factor. Project."""
SPILLED: Final = 16 * 1024**2
"""Additional bytes of spill, by their size in memory, from which spill is a cause. Project."""
SPILL_BYTES_PER_MS: Final = 10_000
"""The slowest spill, 10 MB/s; time beyond that has another cause. Project: a poor network disk."""
READ_BYTES: Final = 512 * 1024
READ_ROWS: Final = 100_000
"""Tasks that read less than both wait for something else than storage: it is one request of an object store. Rows
count because Spark counts too few bytes of local Parquet files. Project."""
OF_DISTRIBUTION: Final[tuple[Kind, ...]] = ("shuffle", "scheduling", "processor", "machine", "skew", "balance")
"""What the distribution of rows over tasks determines."""


class Contribution(NamedTuple):
    """Wall-clock milliseconds that a cause added; negative where it saved time. The groups are the evidence."""

    kind: Kind
    ms: float
    before: StageGroup = NO_GROUP
    now: StageGroup = NO_GROUP


def contributions(before: RunProfile, now: RunProfile) -> list[Contribution]:
    """The difference in duration, by kind and group."""
    amounts = [
        Contribution("startup", now.startup_ms - before.startup_ms),
        Contribution("driver", now.end_ms - before.end_ms),
    ]
    changes = plan_changes(before, now)
    whole = {place for place in changes if changes[place].moves_rows or _flows(before, place) != _flows(now, place)}
    earlier, later = _comparable(before, whole), _comparable(now, whole)
    for key in earlier | later:
        amounts += _of_groups(earlier.get(key), later.get(key), changes.get(key[0]))
    if now.executors_lost > before.executors_lost:
        amounts = [_blamed_on_loss(amount) for amount in amounts]
    return [amount for amount in amounts if amount.ms]


def _flows(summary: RunProfile, place: str) -> set[str]:
    return {group.flow for group in summary.groups if group.place == place}


def _comparable(summary: RunProfile, whole: set[str]) -> dict[tuple[str, str], StageGroup]:
    """Groups by place and flow; all groups of a place are merged where its flows differ between the runs."""
    groups_by_key: dict[tuple[str, str], list[StageGroup]] = defaultdict(list)
    for group in summary.groups:
        groups_by_key[group.place, "" if group.place in whole else group.flow].append(group)
    return {key: replace(merged(groups), flow=key[1]) for key, groups in groups_by_key.items()}


def _of_groups(before: StageGroup | None, now: StageGroup | None, change: PlanChange | None) -> Iterator[Contribution]:
    if before is None or now is None:
        group = before or now or NO_GROUP
        sign = 1 if before is None else -1
        work = group.wall.work + group.wall.idle
        blocking = min(work, group.wall.blocking) if before is None else 0
        evidence = (before or NO_GROUP, now or NO_GROUP)
        yield Contribution("queueing", blocking, *evidence)
        yield Contribution("new" if before is None else "gone", sign * (work - blocking), *evidence)
        yield Contribution("queueing", sign * group.wall.waiting, *evidence)
        yield Contribution("driver", sign * group.wall.gap, *evidence)
        return
    yield Contribution("driver", now.wall.gap - before.wall.gap, before, now)
    yield Contribution("queueing", now.wall.waiting - before.wall.waiting, before, now)
    amounts: dict[Kind, float] = defaultdict(float)
    for kind, ms in _of_work(_Work(before), _Work(now), change):
        amounts[kind] += ms
    for kind, ms in amounts.items():
        yield Contribution(kind, ms, before, now)


class _Work:
    """The work of a group of stages, as task time (useful) and as wall-clock time (wall, wasted), in milliseconds.

    `cores` is how many tasks ran at once: task time over wall-clock time.
    """

    def __init__(self, group: StageGroup) -> None:
        self.group = group
        spent = group.spent
        self.useful = spent.cpu + spent.gc + spent.shuffle_wait + spent.other + spent.overhead
        self.cores = ((self.useful + spent.wasted) / group.wall.work if group.wall.work else 0) or 1.0
        self.wasted = spent.wasted / self.cores
        self.wall = group.wall.work + group.wall.idle - self.wasted


def _of_work(before: _Work, now: _Work, change: PlanChange | None) -> Iterator[tuple[Kind, float]]:
    """The difference of the work and idle time of two groups, split by kind; the amounts add up to the difference."""
    yield "retries", now.wasted - before.wasted
    more = _more_input(before, now, of_files=change is not None)
    yield "input", more
    scale = (before.wall + more) / before.wall if before.wall else 1.0
    idle = now.group.wall.idle - before.group.wall.idle * scale
    by_cores = before.useful * scale * (1 / now.cores - 1 / before.cores)
    if abs(now.cores - before.cores) > EQUAL_RATIO * before.cores and by_cores * idle < 0:
        moved = max(-abs(by_cores), min(abs(by_cores), idle))  # fewer cores are busier, which is not a gain of its own
        by_cores, idle = by_cores + moved, idle - moved
    yield "cores", by_cores
    rest = {
        name: (after - earlier * scale) / now.cores
        for name, earlier, after in zip(
            TaskTime.__struct_fields__, astuple(before.group.spent), astuple(now.group.spent), strict=True
        )
        if name != "wasted"
    }
    idle -= _charge_idle(rest, idle, before.group)
    explained = _explained(before.group, now.group, change)
    moves_rows = change is not None and change.moves_rows
    parts = _of_rest(rest, idle, before.group, now.group, scale=scale, cores=now.cores, moves_rows=moves_rows)
    for kind, ms in parts:
        yield explained.get(kind, kind), ms


def _explained(before: StageGroup, now: StageGroup, change: PlanChange | None) -> Mapping[Kind, Kind]:
    """The kinds that another distribution of rows explains, with what distributes them: the plan, or other tasks."""
    if change is not None and change.moves_rows:
        return dict.fromkeys(OF_DISTRIBUTION, "plan")
    if _has_other_tasks(before, now):
        return dict.fromkeys(OF_DISTRIBUTION, "tasks")
    return {} if change is None else {"processor": "plan"}


def _charge_idle(rest: dict[str, float], idle: float, before: StageGroup) -> float:
    """Charges idle core time to the causes that lengthened tasks, at the earlier idle-to-work ratio; returns the sum.

    Two tasks that wait for a disk keep four cores from other work, not two.
    """
    longer = sum(rest.values())
    usual = longer * before.wall.idle / before.wall.work if before.wall.work else 0
    if usual * idle <= 0:
        return 0
    moved = min(usual, idle) if idle > 0 else max(usual, idle)
    for name, ms in rest.items():
        rest[name] = ms * (1 + moved / longer)
    return moved


def _more_input(before: _Work, now: _Work, *, of_files: bool) -> float:
    """The cost of additional rows at the earlier time per row, at most the additional time; likewise for fewer rows.

    If the plan changed, only rows of files count, because the plan determines the shuffled rows.
    """
    earlier, later = (_volume(work.group, of_files=of_files) for work in (before, now))
    measure = next((number for number in range(len(earlier)) if earlier[number] and later[number]), None)
    if measure is None or abs(later[measure] / earlier[measure] - 1) < EQUAL_RATIO:
        return 0.0
    expected = before.wall * (later[measure] / earlier[measure] - 1)
    actual = now.wall - before.wall
    if expected * actual <= 0:
        return 0.0
    return min(expected, actual) if expected > 0 else max(expected, actual)


def _volume(group: StageGroup, *, of_files: bool) -> tuple[float, float, float]:
    """The amount of work: rows read, bytes read, and stages; the first known one counts."""
    volume = group.volume
    if of_files:
        return volume.input_records, volume.input_bytes, 0
    records, size = volume.input_records + volume.shuffle_read_records, volume.input_bytes + volume.shuffle_read_bytes
    return records, size, group.stages


def _has_other_tasks(before: StageGroup, now: StageGroup) -> bool:
    earlier, later = (max(1, group.tasks - group.failed) / max(1, group.stages) for group in (before, now))
    return max(earlier, later) / min(earlier, later) >= OTHER_TASKS


def _of_rest(
    rest: dict[str, float],
    idle: float,
    before: StageGroup,
    now: StageGroup,
    *,
    scale: float,
    cores: float,
    moves_rows: bool,
) -> Iterator[tuple[Kind, float]]:
    spilled = now.volume.memory_spilled - before.volume.memory_spilled * scale
    if spilled > SPILLED:
        yield "spill", _taken(rest, ("gc", "cpu", "other"), spilled / SPILL_BYTES_PER_MS / cores)
    yield "gc", rest["gc"]
    yield "shuffle", rest["shuffle_wait"]
    yield "scheduling", rest["overhead"]
    yield "processor", rest["cpu"]
    for kind, part in _parts_of_other(before, now, scale=scale, moves_rows=moves_rows):
        yield kind, rest["other"] * part
    yield _kind_of_idle(before, now), idle


def _taken(rest: dict[str, float], names: Sequence[str], room: float) -> float:
    """Removes added time from `rest`, in the order of the names, up to `room`; returns the sum."""
    taken = 0.0
    for name in names:
        more = max(0.0, min(room - taken, rest[name]))
        rest[name] -= more
        taken += more
    return taken


def _parts_of_other(
    before: StageGroup, now: StageGroup, *, scale: float, moves_rows: bool
) -> Iterator[tuple[Kind, float]]:
    """The parts of storage, Python and other waiting in the changed `other` time; they add up to 1.

    Scans and Python workers have what Spark measured. What is left is Python's if Spark does not measure its workers,
    and storage's if it does not measure the scans and the rows are distributed as before.
    """
    other = now.spent.other - before.spent.other * scale

    def part(earlier: float | None, later: float | None) -> float:
        more = (later or 0) - (earlier or 0) * scale
        return min(1.0, max(0.0, more / other)) if other else 0.0

    volumes = before.volume, now.volume
    has_read = any(volume.input_bytes >= READ_BYTES or volume.input_records >= READ_ROWS for volume in volumes)
    storage = part(before.scan_ms, now.scan_ms) if has_read else 0.0
    longer = now if other > 0 else before
    is_unmeasured = longer.has_python and longer.python_ms is None
    python = min(1 - storage, 1.0 if is_unmeasured else part(before.python_ms, now.python_ms))
    is_scanned = before.scan_ms is not None or now.scan_ms is not None
    rest: Kind = "machine" if is_scanned or moves_rows or not has_read else "storage"
    yield "storage", storage
    yield "python", python
    yield rest, 1 - storage - python


def _kind_of_idle(before: StageGroup, now: StageGroup) -> Kind:
    if now.spent.wasted > before.spent.wasted:
        return "retries"
    if now.longest_ms * before.median_ms > SKEWED * before.longest_ms * now.median_ms:
        return "skew"
    return "skew" if now.largest_share > SKEWED * before.largest_share > 0 else "balance"


def _blamed_on_loss(amount: Contribution) -> Contribution:
    """The same amount as `executors`, if a lost executor explains it by its cores, tasks or shuffle blocks."""
    is_loss = amount.ms > 0 and amount.kind in ("cores", "retries", "queueing", "shuffle")
    return amount._replace(kind="executors") if is_loss else amount
