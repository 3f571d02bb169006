"""The small record of an application that ended, as data: what the next ones are compared with.

A few kilobytes of JSON. Times are milliseconds, sizes bytes; what happened is told by what it was for, never by an id.
"""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import astuple, replace

VERSION: Final = 2
"""Of the content; records of version 1 may have passwords in them, and are not read."""
Outcome = Literal["succeeded", "failed", "incomplete"]


class Spent(Struct, omit_defaults=True):
    """What tasks did with their time, in milliseconds of tasks; `wasted` is all of those that had to be done again.

    Attributes:
        cpu, gc, shuffle_wait: Processor, garbage collector, blocks of other stages.
        other: The rest of the run: storage, Python workers, a machine that is busy with something else.
        overhead: Sent out, unpacked, answered: not the run.
        wasted: Failed, killed, or repeated since their results were lost.
    """

    cpu: float = 0
    gc: float = 0
    shuffle_wait: float = 0
    other: float = 0
    overhead: float = 0
    wasted: float = 0


class Wall(Struct, omit_defaults=True):
    """Wall-clock time, in milliseconds; see `wallclock.Part`."""

    work: float = 0
    idle: float = 0
    waiting: float = 0
    gap: float = 0
    blocking: float = 0


class Volume(Struct, omit_defaults=True):
    """Rows and bytes that tasks moved."""

    input_records: int = 0
    input_bytes: int = 0
    shuffle_read_records: int = 0
    shuffle_read_bytes: int = 0
    shuffle_write_records: int = 0
    shuffle_write_bytes: int = 0
    output_records: int = 0
    output_bytes: int = 0
    memory_spilled: int = 0
    disk_spilled: int = 0


class Group(Struct, omit_defaults=True):
    """All attempts of stages that do the same.

    Attributes:
        place: What they are for, as `groups.group_of` says it, without where rows come from and go to.
        flow: Where their rows come from and go to.
        wall: The wall-clock time that is theirs.
        spent, volume: Sums over their tasks.
        median_ms, longest_ms: Of the time of a task.
        largest_share: Part of the shuffled bytes of an attempt that one task read, where there were two and more.
    """

    place: str
    flow: str
    wall: Wall
    spent: Spent
    volume: Volume
    stages: int = 0
    tasks: int = 0
    failed: int = 0
    has_python: bool = False
    median_ms: float = 0
    longest_ms: float = 0
    largest_share: float = 0


class Plan(Struct):
    """The plan of a query: a hash of its operators, their order and filters; its joins and its scans."""

    fingerprint: str
    joins: list[str]
    scans: list[str]


class Summary(Struct):
    """The record of one application.

    Attributes:
        startup_ms: From its start to its first stage.
        end_ms: After its last stage.
        core_ms: Cores of its executors over time.
        executors_lost: Those that went while it was at work, except those that it gave back.
        settings: What it was started with and what its queries changed; secrets, paths and ids are left out.
        plans: Of its queries, by the place of their stages, in the order of their first run.
        workload: What a command of ours was asked to do; empty for others.
        steps: How long Spark worked for each step of ours, in milliseconds; none for others.
    """

    version: int
    application: str
    id: str
    outcome: Outcome
    started: int
    duration_ms: int
    startup_ms: float
    end_ms: float
    core_ms: float
    executors_lost: int
    spark_version: str | None
    settings: dict[str, str]
    groups: list[Group]
    plans: dict[str, list[Plan]]
    workload: str = ""
    steps: dict[str, float] = {}


def place_and_flow(group: str) -> tuple[str, str]:
    """A group of `groups.group_of` as what its stages are for, and where their rows come from and go to."""
    place, _, flow = group.rpartition(" [")
    return place, flow.removesuffix("]")


def merged(groups: Sequence[Group]) -> Group:
    """Several groups as one, with the place and the flow, and the median of the first."""
    first = groups[0]
    return replace(
        first,
        wall=Wall(*map(sum, zip(*(astuple(group.wall) for group in groups), strict=True))),
        spent=Spent(*map(sum, zip(*(astuple(group.spent) for group in groups), strict=True))),
        volume=Volume(*map(sum, zip(*(astuple(group.volume) for group in groups), strict=True))),
        stages=sum(group.stages for group in groups),
        tasks=sum(group.tasks for group in groups),
        failed=sum(group.failed for group in groups),
        has_python=any(group.has_python for group in groups),
        longest_ms=max(group.longest_ms for group in groups),
    )
