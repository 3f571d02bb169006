"""The run profile: a small summary of an application that ended, with which later runs are compared.

It is a few kilobytes of JSON, and up to 75 KB more where the host was sampled. Times are milliseconds, sizes bytes.
Stages are named by their work, never by an id.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple, replace

from spark_app.eventlog.model.host_load import HostLoad
from spark_app.eventlog.model.outcome import Outcome
from spark_app.vocabulary.spark_progress import sum_of_known

VERSION: Final = 3
"""The version of the format. Others are not read: version 1 may contain passwords, version 2 names stages by lines."""


class TaskTime(Struct, omit_defaults=True):
    """What tasks did with their time, in milliseconds of task time.

    Attributes:
        cpu, gc, shuffle_wait: CPU time, garbage collection, and waiting for the shuffle blocks of other stages.
        other: The rest of the run time: storage, Python workers, a machine that is busy with other processes.
        overhead: Time outside the run time: scheduling, deserialising, and returning results.
        wasted: All time of tasks that failed, were killed, or were repeated because their results were lost.
    """

    cpu: float = 0
    gc: float = 0
    shuffle_wait: float = 0
    other: float = 0
    overhead: float = 0
    wasted: float = 0


class Wall(Struct, omit_defaults=True):
    """The wall-clock time of stage attempts, in milliseconds.

    Attributes:
        work: Time in which their tasks ran, multiplied by their share of the slots.
        idle: Time in which their tasks ran, multiplied by the share of the slots without a task.
        waiting: Time in which they were submitted and no task of any stage ran.
        gap: Time before their submission in which only the driver worked.
        blocking: The part of their work during which all tasks of another job waited for cores.
    """

    work: float = 0
    idle: float = 0
    waiting: float = 0
    gap: float = 0
    blocking: float = 0


class Volume(Struct, omit_defaults=True):
    """Rows and bytes that tasks moved: these of the numbers of `task_numbers.Totals`."""

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


class StageGroup(Struct, omit_defaults=True):
    """All attempts of stages with the same work.

    Attributes:
        place: Their work, as `stage_groups.group_of` names it, without the flow.
        flow: The sources and the destination of their rows.
        wall: Their wall-clock time.
        spent, volume: Sums over their tasks.
        has_python: Whether their tasks run Python functions.
        median_ms, longest_ms: The median and the longest duration of a task.
        largest_share: The largest share of the shuffled bytes of an attempt that one of several tasks read.
        python_ms: The time of tasks in Python workers; None where Spark measures none: before 4.0, and in RDDs.
        scan_ms: The time of tasks in columnar scans of files, reading and decoding; None where Spark measures none.
    """

    place: str
    flow: str
    wall: Wall
    spent: TaskTime
    volume: Volume
    stages: int = 0
    tasks: int = 0
    failed: int = 0
    has_python: bool = False
    median_ms: float = 0
    longest_ms: float = 0
    largest_share: float = 0
    python_ms: float | None = None
    scan_ms: float | None = None


class OperatorSum(Struct, omit_defaults=True):
    """The operators of the queries of one place that do the same.

    Attributes:
        name: What they do: `SortMergeJoin`, `Exchange hashpartitioning(shop)`, `ArrowEvalPython price`.
        number: How often the different plans of the place have it.
        rows: The rows that they returned; None if Spark counts none.
        bytes: The bytes that they shuffled, broadcast or read from files; None if Spark counts none.
        ms: Task time in Python, scanning, sorting, aggregating or building a table; None if Spark measures none.
    """

    name: str
    number: int = 1
    rows: float | None = None
    bytes: float | None = None
    ms: float | None = None


class RunProfile(Struct):
    """The summary of one application.

    Attributes:
        startup_ms: The time from its start to its first stage.
        end_ms: The time after its last stage.
        core_ms: The cores of its executors over time.
        gib_ms: The memory that was requested for its executors over time, in GiB; None where that is not known.
        executors_lost: Executors that it lost while it ran, except those that it released.
        settings: The settings of the application and of its queries, without secrets, paths and ids.
        plans: Fingerprints of the different plans of its queries, by the place of their stages.
        operators: The operators of its queries, by the place of their stages, without projections.
        workload: The arguments of a spark-app command; empty for other applications.
        runnable: Mean number of threads per processor of the host of its driver that ran or waited for one; None where
            nothing measured it.
        steps: How long Spark worked for each step of a pipeline, in milliseconds; empty for other applications.
        exit_code: Of its process, where `spark-app observe` started it.
        host_load: What was sampled of the host of its driver, from which later reports of its log judge.
        users: The part of `core_ms` of each of its users: who submitted it, or the users of a Spark Connect server, the
            most expensive ones, and under the empty name the rest.
        labels: Whom it belongs to: user, namespace, cluster, team and others of the configuration.
        peak_heap_bytes: The most heap that an executor was seen to use; None where nothing reported it.
        largest_shuffle_bytes: What the largest shuffle of a query moved; None without any.
        findings: The rules of its findings, worst first, each once; they are listed and not compared.
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
    groups: list[StageGroup]
    plans: dict[str, list[str]]
    operators: dict[str, list[OperatorSum]]
    workload: str = ""
    runnable: float | None = None
    gib_ms: float | None = None
    steps: dict[str, float] = {}
    exit_code: int | None = None
    host_load: HostLoad | None = None
    users: dict[str, float] = {}
    labels: dict[str, str] = {}
    peak_heap_bytes: int | None = None
    largest_shuffle_bytes: int | None = None
    findings: list[str] = []


def place_and_flow(group: str) -> tuple[str, str]:
    """Splits the name of a stage group of `stage_groups.group_of` into its place and its flow."""
    place, _, flow = group.rpartition(" [")
    return place, flow.removesuffix("]")


def merged(groups: Sequence[StageGroup]) -> StageGroup:
    """Merges groups into one, with the place, the flow and the median of the first."""
    first = groups[0]
    return replace(
        first,
        wall=Wall(*map(sum, zip(*(astuple(group.wall) for group in groups), strict=True))),
        spent=TaskTime(*map(sum, zip(*(astuple(group.spent) for group in groups), strict=True))),
        volume=Volume(*map(sum, zip(*(astuple(group.volume) for group in groups), strict=True))),
        stages=sum(group.stages for group in groups),
        tasks=sum(group.tasks for group in groups),
        failed=sum(group.failed for group in groups),
        has_python=any(group.has_python for group in groups),
        longest_ms=max(group.longest_ms for group in groups),
        python_ms=sum_of_known(group.python_ms for group in groups),
        scan_ms=sum_of_known(group.scan_ms for group in groups),
    )
