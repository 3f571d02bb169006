"""Where the difference between two applications went: amounts of wall-clock time that add up to it.

Groups of stages are aligned by what they do. Of each, the time that has changed is taken apart in this order: work that
had to be done again; more or less input, at the earlier time per row; more or fewer cores, at the work that then is
left; and of the rest, what tasks did with their time (processor, garbage collector, shuffle, the rest of the run, the
way to and from the executor), and cores that had none. Where the plan or the number of tasks changed, the rest is
theirs.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from msgspec.structs import astuple, replace

from app.eventlog.comparison.record import Group, Spent, Summary, Volume, Wall, merged

Kind = Literal[
    "input", "skew", "cores", "executors", "retries", "spill", "gc", "plan", "storage", "python", "machine", "queueing",
    "tasks", "processor", "shuffle", "scheduling", "balance", "driver", "startup", "new", "gone",
]  # fmt: skip
NO_GROUP: Final = Group("", "", Wall(), Spent(), Volume())
SAME: Final = 0.02
"""Two figures this near to each other are taken as equal. Ours."""
OTHER_TASKS: Final = 1.5
"""Tasks per stage that are this many times more or fewer are another partitioning. Ours."""
SKEWED: Final = 1.5
"""The longest task over the median one, or its part of the data, this many times what it was is skew. Ours."""
SPILLED: Final = 16 * 1024**2
"""Bytes, in memory, that must be spilled beyond what was spilled before, to be a cause. Ours."""
SPILL_BYTES_PER_MS: Final = 10_000
"""Nothing spills more slowly than 10 MB/s; time beyond that has another cause. Ours: a poor network disk."""


class Amount(NamedTuple):
    """Wall-clock milliseconds that one cause added; negative where it saved time. The groups are the evidence."""

    kind: Kind
    ms: float
    before: Group = NO_GROUP
    now: Group = NO_GROUP


def amounts(before: Summary, now: Summary) -> list[Amount]:
    """All of the difference in duration, by kind and group."""
    found = [
        Amount("startup", now.startup_ms - before.startup_ms),
        Amount("driver", now.end_ms - before.end_ms),
    ]
    changed = changed_plans(before, now)
    earlier, later = _comparable(before, changed), _comparable(now, changed)
    for key in earlier | later:
        found += _of_groups(earlier.get(key), later.get(key), has_other_plan=key[0] in changed)
    if now.executors_lost > before.executors_lost:
        found = [_blamed_on_loss(amount) for amount in found]
    return [amount for amount in found if amount.ms]


def changed_plans(before: Summary, now: Summary) -> set[str]:
    """Places whose queries ran with other plans."""
    one, other = (
        {place: [plan.fingerprint for plan in plans] for place, plans in summary.plans.items()}
        for summary in (before, now)
    )
    return {place for place in one.keys() & other.keys() if set(one[place]) != set(other[place])}


def _comparable(summary: Summary, changed: set[str]) -> dict[tuple[str, str], Group]:
    """Groups by place and flow; all groups of a place whose plan has changed are merged, as their flows may differ."""
    found: dict[tuple[str, str], list[Group]] = defaultdict(list)
    for group in summary.groups:
        found[group.place, "" if group.place in changed else group.flow].append(group)
    return {key: replace(merged(groups), flow=key[1]) for key, groups in found.items()}


def _of_groups(before: Group | None, now: Group | None, *, has_other_plan: bool) -> Iterator[Amount]:
    if before is None or now is None:
        group = before or now or NO_GROUP
        sign = 1 if before is None else -1
        work = group.wall.work + group.wall.idle
        blocking = min(work, group.wall.blocking) if before is None else 0
        evidence = (before or NO_GROUP, now or NO_GROUP)
        yield Amount("queueing", blocking, *evidence)
        yield Amount("new" if before is None else "gone", sign * (work - blocking), *evidence)
        yield Amount("queueing", sign * group.wall.waiting, *evidence)
        yield Amount("driver", sign * group.wall.gap, *evidence)
        return
    yield Amount("driver", now.wall.gap - before.wall.gap, before, now)
    yield Amount("queueing", now.wall.waiting - before.wall.waiting, before, now)
    for kind, ms in _of_work(_Work(before), _Work(now), has_other_plan=has_other_plan):
        yield Amount(kind, ms, before, now)


class _Work:
    """The work of a group of stages, as task time (useful) and as wall-clock time (wall, wasted), in milliseconds.

    `cores` is how many tasks ran at once: task time over wall-clock time.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        spent = group.spent
        self.useful = spent.cpu + spent.gc + spent.shuffle_wait + spent.other + spent.overhead
        self.cores = ((self.useful + spent.wasted) / group.wall.work if group.wall.work else 0) or 1.0
        self.wasted = spent.wasted / self.cores
        self.wall = group.wall.work + group.wall.idle - self.wasted


def _of_work(before: _Work, now: _Work, *, has_other_plan: bool) -> Iterator[tuple[Kind, float]]:
    """The difference of the work and idle time of two groups, split by kind; the amounts add up to the difference."""
    yield "retries", now.wasted - before.wasted
    more = _more_input(before, now, of_files=has_other_plan)
    yield "input", more
    scale = (before.wall + more) / before.wall if before.wall else 1.0
    idle = now.group.wall.idle - before.group.wall.idle * scale
    by_cores = before.useful * scale * (1 / now.cores - 1 / before.cores)
    if abs(now.cores - before.cores) > SAME * before.cores and by_cores * idle < 0:
        moved = max(-abs(by_cores), min(abs(by_cores), idle))  # fewer cores are better used; that is no gain of its own
        by_cores, idle = by_cores + moved, idle - moved
    yield "cores", by_cores
    rest = {
        name: (after - earlier * scale) / now.cores
        for name, earlier, after in zip(
            Spent.__struct_fields__, astuple(before.group.spent), astuple(now.group.spent), strict=True
        )
        if name != "wasted"
    }
    idle -= _charge_idle(rest, idle, before.group)
    if has_other_plan:
        yield "plan", sum(rest.values()) + idle
    elif _has_other_tasks(before.group, now.group):
        yield "gc", rest.pop("gc")
        yield "tasks", sum(rest.values()) + idle
    else:
        yield from _of_rest(rest, idle, before.group, now.group, scale=scale, cores=now.cores)


def _charge_idle(rest: dict[str, float], idle: float, before: Group) -> float:
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
    """What additional rows cost at the earlier time per row, at most the time that was added; likewise for fewer rows.

    Where the plan is another, only rows of files count: what a plan shuffles is its own choice.
    """
    one, other = (_volume(work.group, of_files=of_files) for work in (before, now))
    measure = next((number for number in range(len(one)) if one[number] and other[number]), None)
    if measure is None or abs(other[measure] / one[measure] - 1) < SAME:
        return 0.0
    expected = before.wall * (other[measure] / one[measure] - 1)
    actual = now.wall - before.wall
    if expected * actual <= 0:
        return 0.0
    return min(expected, actual) if expected > 0 else max(expected, actual)


def _volume(group: Group, *, of_files: bool) -> tuple[float, float, float]:
    """How much there was to do: rows read, else bytes read, else stages."""
    volume = group.volume
    if of_files:
        return volume.input_records, volume.input_bytes, 0
    records, size = volume.input_records + volume.shuffle_read_records, volume.input_bytes + volume.shuffle_read_bytes
    return records, size, group.stages


def _has_other_tasks(before: Group, now: Group) -> bool:
    one, other = (max(1, group.tasks - group.failed) / max(1, group.stages) for group in (before, now))
    return max(one, other) / min(one, other) >= OTHER_TASKS


def _of_rest(
    rest: dict[str, float], idle: float, before: Group, now: Group, *, scale: float, cores: float
) -> Iterator[tuple[Kind, float]]:
    spilled = now.volume.memory_spilled - before.volume.memory_spilled * scale
    if spilled > SPILLED:
        yield "spill", _taken(rest, ("gc", "cpu", "other"), spilled / SPILL_BYTES_PER_MS / cores)
    yield "gc", rest["gc"]
    yield "shuffle", rest["shuffle_wait"]
    yield "scheduling", rest["overhead"]
    yield "processor", rest["cpu"]
    yield _kind_of_other(now), rest["other"]
    yield _kind_of_idle(before, now), idle


def _taken(rest: dict[str, float], names: Sequence[str], room: float) -> float:
    """Takes the time that was added out of `rest`, in the order of the names, up to `room`; returns the sum."""
    taken = 0.0
    for name in names:
        more = max(0.0, min(room - taken, rest[name]))
        rest[name] -= more
        taken += more
    return taken


def _kind_of_other(now: Group) -> Kind:
    if now.volume.input_bytes or now.volume.input_records:
        return "storage"
    return "python" if now.has_python else "machine"


def _kind_of_idle(before: Group, now: Group) -> Kind:
    if now.spent.wasted > before.spent.wasted:
        return "retries"
    if now.longest_ms * before.median_ms > SKEWED * before.longest_ms * now.median_ms:
        return "skew"
    return "skew" if now.largest_share > SKEWED * before.largest_share > 0 else "balance"


def _blamed_on_loss(amount: Amount) -> Amount:
    """The same amount under `executors`, if the loss of one explains it: cores, tasks or blocks that went with it."""
    is_loss = amount.ms > 0 and amount.kind in ("cores", "retries", "queueing", "shuffle")
    return amount._replace(kind="executors") if is_loss else amount
