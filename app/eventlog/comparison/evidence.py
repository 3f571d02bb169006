"""The numbers that stand behind a cause: half a sentence about the group of stages where most of it happened."""

from collections.abc import Callable, Sequence

from msgspec.structs import astuple

from app.amounts import count, duration, share, size, things
from app.eventlog.comparison.attribution import Amount, changed_plans
from app.eventlog.comparison.record import Group, Plan, Summary
from app.eventlog.diagnoses import words

Evidence = Callable[[Summary, Summary, Amount], str]


def place(amount: Amount) -> str:
    """What the stages of an amount are for."""
    return amount.now.place or amount.before.place


def seconds(ms: float) -> str:
    """A difference for a person: `+12.3 s`, `-1 min 05 s`."""
    whole = round(ms)
    return f"{'-' if whole < 0 else '+'}{duration(abs(whole))}"


def _where(amount: Amount) -> str:
    group = amount.now if amount.now.place else amount.before
    return words.cut(f"{group.place} [{group.flow}]" if group.flow else group.place)


def volume(before: Summary, now: Summary, amount: Amount) -> str:
    """Rows and bytes that were read, of files where the plan is another; how many stages where neither is known."""
    of_files = place(amount) in changed_plans(before, now)
    one, other = (_read(group, of_files=of_files) for group in (amount.now, amount.before))
    if one and other:
        return f"{_where(amount)} read {one}{' of files' if of_files else ''}, before {other}"
    return f"{_where(amount)} ran {things(amount.now.stages, 'stage')}, before {count(amount.before.stages)}"


def _read(group: Group, *, of_files: bool = False) -> str:
    volume = group.volume
    records, octets = volume.input_records, volume.input_bytes
    if not of_files:
        records, octets = records + volume.shuffle_read_records, octets + volume.shuffle_read_bytes
    told = f"{count(records)} rows" if records else ""
    return f"{told} ({size(octets)})" if told and octets else told or (size(octets) if octets else "")


def skew(_: Summary, __: Summary, amount: Amount) -> str:
    """The longest task beside the median one."""
    return f"of {_where(amount)}, {_longest(amount.now)}, before {_longest(amount.before)}"


def _longest(group: Group) -> str:
    read = f" and read {share(group.largest_share)} of the data" if group.largest_share else ""
    return f"the longest task took {duration(group.longest_ms)}{read} (median {duration(group.median_ms)})"


def cores(before: Summary, now: Summary, amount: Amount) -> str:
    """Cores over time; where a log tells of no executor, tasks at once."""
    if now.core_ms and before.core_ms:
        one, other = (summary.core_ms / max(1, summary.duration_ms) for summary in (now, before))
        return f"there were {count(one)} on average, before {count(other)}"
    return f"{_where(amount)} had {_at_once(amount.now)} tasks at work at once, before {_at_once(amount.before)}"


def _at_once(group: Group) -> str:
    return count(sum(astuple(group.spent)) / group.wall.work if group.wall.work else None)


def executors(before: Summary, now: Summary, amount: Amount) -> str:
    """Executors that went."""
    lost = things(now.executors_lost, "executor")
    return f"{lost} went, before {count(before.executors_lost)}; it cost most in {_where(amount)}"


def retries(_: Summary, __: Summary, amount: Amount) -> str:
    """Failed tasks, and what they had done."""
    one, other = (
        f"{things(group.failed, 'failed task')}, {duration(group.spent.wasted)} of tasks' work lost"
        for group in (amount.now, amount.before)
    )
    return f"{_where(amount)} had {one}, before {other}"


def spill(_: Summary, __: Summary, amount: Amount) -> str:
    """Bytes that did not fit."""
    one, other = (
        f"{size(group.volume.memory_spilled)} ({size(group.volume.disk_spilled)} on disk)"
        for group in (amount.now, amount.before)
    )
    return f"{_where(amount)} spilled {one}, before {other}"


def plan(before: Summary, now: Summary, amount: Amount) -> str:
    """Joins and scans."""
    one, other = (_plans(summary.plans.get(place(amount), [])) for summary in (now, before))
    sizes = [group.volume.shuffle_read_bytes for group in (amount.now, amount.before)]
    shuffled = f"; it shuffled {size(sizes[0])}, before {size(sizes[1])}" if any(sizes) else ""
    ran = f"ran {one}, before {other}" if one != other else "has the same joins and scans, and other steps around them"
    return f"{words.cut(place(amount))} {ran}{shuffled}"


def _plans(plans: Sequence[Plan]) -> str:
    joins = ", ".join(dict.fromkeys(join for plan in plans for join in plan.joins))
    scans = ", ".join(dict.fromkeys(scan for plan in plans for scan in plan.scans))
    told = " on ".join(part for part in (words.cut(joins, 80), words.cut(scans, 120)) if part)
    return told or "no join or scan"


def spent(field: str, what: str) -> Evidence:
    """What tasks did with their time, by one field of `record.Spent`."""

    def evidence(_: Summary, __: Summary, amount: Amount) -> str:
        one, other = (duration(getattr(group.spent, field)) for group in (amount.now, amount.before))
        read = f", on {_read(amount.now)}" if _read(amount.now) else ""
        return f"tasks of {_where(amount)} spent {one} {what}, before {other}{read}"

    return evidence


def tasks(_: Summary, __: Summary, amount: Amount) -> str:
    """How many tasks, and how long."""
    one, other = (
        f"{things(group.tasks, 'task')} of {duration(group.median_ms)}" for group in (amount.now, amount.before)
    )
    return f"{_where(amount)} ran in {one} (median), before {other}"


def waiting(_: Summary, __: Summary, amount: Amount) -> str:
    """Time before the first task, or who held the cores."""
    if amount.now.wall.blocking and not amount.before.place:
        return f"others waited {duration(amount.now.wall.blocking)} for {_where(amount)}, which was not there before"
    return f"{_where(amount)} {_both(amount, 'waiting', 'waited', 'for its first task')}"


def idle(_: Summary, __: Summary, amount: Amount) -> str:
    """Cores without a task."""
    one, other = (duration(group.wall.idle) for group in (amount.now, amount.before))
    return f"{one} of cores without a task beside {_where(amount)}, before {other}"


def driver(before: Summary, now: Summary, amount: Amount) -> str:
    """Time without a stage."""
    if not place(amount):
        return f"{duration(now.end_ms)} after the last stage, before {duration(before.end_ms)}"
    return f"{_where(amount)} {_both(amount, 'gap', 'began after', 'without a task')}"


def _both(amount: Amount, field: str, did: str, what: str) -> str:
    """A time of a group on both sides; work that is on one side only has none on the other, which is not 0."""
    one, other = (duration(getattr(group.wall, field)) for group in (amount.now, amount.before))
    if not amount.now.place:
        return f"is gone; before, it {did} {other} {what}"
    return f"{did} {one} {what}, {f'before {other}' if amount.before.place else 'and was not there before'}"


def startup(before: Summary, now: Summary, _: Amount) -> str:
    """Time to the first stage."""
    return f"the first stage began after {duration(now.startup_ms)}, before {duration(before.startup_ms)}"


def work(_: Summary, __: Summary, amount: Amount) -> str:
    """What is there on one side only."""
    group = amount.now if amount.now.place else amount.before
    return f"{_where(amount)}, {things(group.tasks, 'task')}"
