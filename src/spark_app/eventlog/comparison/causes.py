"""Every kind of cause of a difference: its name, the numbers behind it, what to do, and the settings that affect it."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from spark_app.eventlog.comparison.attribution import Contribution, Kind
from spark_app.eventlog.comparison.plan_changes import PlanChange, of_python, plan_changes
from spark_app.eventlog.comparison.profile import RunProfile, StageGroup
from spark_app.eventlog.model import memory_settings
from spark_app.formatting import count, duration, quantity, share, size
from spark_app.redaction import excerpt

Evidence = Callable[[RunProfile, RunProfile, Contribution], str]
MAX_SETTINGS_SAID: Final = 3
"""Changed settings that a sentence names; the comparison has all."""

OF_ALL: Final[tuple[Kind, ...]] = ("cores", "executors", "startup")
"""Kinds whose numbers describe the whole run."""


class Setting(Struct, frozen=True):
    """A Spark property that changed; None where it is not set."""

    name: str
    now: str | None
    before: str | None

    def __str__(self) -> str:
        """`spark.sql.shuffle.partitions is 200, before not set`."""
        value, baseline = excerpt(self.now or "not set", 60), excerpt(self.before or "not set", 60)
        return f"{excerpt(self.name, 100)} is {value}, before {baseline}"


def place(amount: Contribution) -> str:
    """The place of the stages of an amount."""
    return amount.now.place or amount.before.place


def seconds(ms: float) -> str:
    """A difference as text: `+12.3 s`, `-1 min 05 s`."""
    whole = round(ms)
    return f"{'-' if whole < 0 else '+'}{duration(abs(whole))}"


def _where(amount: Contribution) -> str:
    group = amount.now if amount.now.place else amount.before
    return excerpt(f"{group.place} [{group.flow}]" if group.flow else group.place)


def volume(before: RunProfile, now: RunProfile, amount: Contribution) -> str:
    """Rows and bytes that tasks read, only from files if the plan changed; else the number of stages."""
    of_files = place(amount) in plan_changes(before, now)
    current, baseline = (_read(group, of_files=of_files) for group in (amount.now, amount.before))
    if current and baseline:
        return f"{_where(amount)} read {current}{' of files' if of_files else ''}, before {baseline}"
    return f"{_where(amount)} ran {quantity(amount.now.stages, 'stage')}, before {count(amount.before.stages)}"


def _read(group: StageGroup, *, of_files: bool = False) -> str:
    volume = group.volume
    records, octets = volume.input_records, volume.input_bytes
    if not of_files:
        records, octets = records + volume.shuffle_read_records, octets + volume.shuffle_read_bytes
    rows = f"{count(records)} rows" if records else ""
    return f"{rows} ({size(octets)})" if rows and octets else rows or (size(octets) if octets else "")


def _on(amount: Contribution) -> str:
    read = _read(amount.now)
    return f", on {read}" if read else ""


def skew(_: RunProfile, __: RunProfile, amount: Contribution) -> str:
    """The longest task beside the median one."""
    return f"of {_where(amount)}, {_longest(amount.now)}, before {_longest(amount.before)}"


def _longest(group: StageGroup) -> str:
    read = f" and read {share(group.largest_share)} of the data" if group.largest_share else ""
    return f"the longest task took {duration(group.longest_ms)}{read} (median {duration(group.median_ms)})"


def cores(before: RunProfile, now: RunProfile, amount: Contribution) -> str:
    """The average cores; the average running tasks if a log has no executors."""
    if now.core_ms and before.core_ms:
        current, baseline = (summary.core_ms / max(1, summary.duration_ms) for summary in (now, before))
        return f"there were {count(current)} on average, before {count(baseline)}"
    return f"{_where(amount)} had {_at_once(amount.now)} tasks running at once, before {_at_once(amount.before)}"


def _at_once(group: StageGroup) -> str:
    return count(sum(astuple(group.spent)) / group.wall.work if group.wall.work else None)


def executors(before: RunProfile, now: RunProfile, amount: Contribution) -> str:
    """The lost executors."""
    lost = quantity(now.executors_lost, "executor")
    return f"{lost} lost, before {count(before.executors_lost)}; most costly in {_where(amount)}"


def retries(_: RunProfile, __: RunProfile, amount: Contribution) -> str:
    """The failed tasks and their lost time."""
    current, baseline = (
        f"{quantity(group.failed, 'failed task')}, {duration(group.spent.wasted)} of task time lost"
        for group in (amount.now, amount.before)
    )
    return f"{_where(amount)} had {current}, before {baseline}"


def spill(_: RunProfile, __: RunProfile, amount: Contribution) -> str:
    """The spilled bytes."""
    current, baseline = (
        f"{size(group.volume.memory_spilled)} ({size(group.volume.disk_spilled)} on disk)"
        for group in (amount.now, amount.before)
    )
    return f"{_where(amount)} spilled {current}, before {baseline}"


def plan(before: RunProfile, now: RunProfile, amount: Contribution) -> str:
    """The operators that were added and removed, and what that made of the shuffle and of the longest task."""
    change = plan_changes(before, now)[place(amount)]
    clauses = [f"{excerpt(place(amount))}: {change.text}"]
    current, baseline = (group.volume.shuffle_read_bytes for group in (amount.now, amount.before))
    if current or baseline:
        clauses.append(f"it shuffled {size(current)}, before {size(baseline)}")
    if change.moves_rows and amount.now.longest_ms > amount.before.longest_ms:
        clauses.append(f"{_longest(amount.now)}, before {_longest(amount.before)}")
    return "; ".join(clauses)


def spent(field: str, what: str) -> Evidence:
    """What tasks did with their time, by one field of `profile.TaskTime`."""

    def evidence(_: RunProfile, __: RunProfile, amount: Contribution) -> str:
        current, baseline = (duration(getattr(group.spent, field)) for group in (amount.now, amount.before))
        return f"tasks of {_where(amount)} spent {current} {what}, before {baseline}{_on(amount)}"

    return evidence


def host_text(before: RunProfile, now: RunProfile) -> str:
    """The load of the host: `6.9 runnable threads for each processor, before 1.2`; empty where it was not measured."""
    if now.runnable is None:
        return ""
    return f"{count(now.runnable)} runnable threads for each processor, before {count(before.runnable)}"


def machine(before: RunProfile, now: RunProfile, amount: Contribution) -> str:
    """The time that tasks waited, without that in Python and in scans, and the load of the host of the driver."""
    current, baseline = (
        duration(max(0.0, group.spent.other - (group.python_ms or 0) - (group.scan_ms or 0)))
        for group in (amount.now, amount.before)
    )
    host = host_text(before, now)
    load = f"; the host of the driver had {host}" if host else ""
    return f"tasks of {_where(amount)} spent {current} waiting, not for a shuffle, before {baseline}{_on(amount)}{load}"


def python(before: RunProfile, now: RunProfile, amount: Contribution) -> str:
    """The time in Python workers, else all time outside the JVM, and the Python functions that are new or gone."""
    groups = amount.now, amount.before
    is_measured = all(group.python_ms is not None or not group.has_python for group in groups)
    current, baseline = (duration((group.python_ms or 0) if is_measured else group.spent.other) for group in groups)
    what = "in Python workers" if is_measured else "outside the JVM"
    change = plan_changes(before, now).get(place(amount), PlanChange([], []))
    changed = PlanChange(of_python(change.added), of_python(change.removed))
    functions = f"; {changed.text}" if changed.added or changed.removed else ""
    return f"tasks of {_where(amount)} spent {current} {what}, before {baseline}{_on(amount)}{functions}"


def storage(_: RunProfile, __: RunProfile, amount: Contribution) -> str:
    """The time in scans, else all waiting of tasks that read."""
    groups = amount.now, amount.before
    is_measured = all(group.scan_ms is not None for group in groups)
    current, baseline = (duration(group.scan_ms if is_measured else group.spent.other) for group in groups)
    what = "scanning files" if is_measured else "waiting, not for a shuffle"
    return f"tasks of {_where(amount)} spent {current} {what}, before {baseline}{_on(amount)}"


def tasks(_: RunProfile, __: RunProfile, amount: Contribution) -> str:
    """The number of tasks and their median duration."""
    current, baseline = (
        f"{quantity(group.tasks, 'task')} of {duration(group.median_ms)}" for group in (amount.now, amount.before)
    )
    return f"{_where(amount)} ran in {current} (median), before {baseline}"


def waiting(_: RunProfile, __: RunProfile, amount: Contribution) -> str:
    """The time before the first task, or the stages that other jobs waited for."""
    if amount.now.wall.blocking and not amount.before.place:
        return f"other jobs waited {duration(amount.now.wall.blocking)} for {_where(amount)}, which is new"
    return f"{_where(amount)} {_both_times(amount, 'waiting', 'waited', 'for its first task')}"


def idle(_: RunProfile, __: RunProfile, amount: Contribution) -> str:
    """The time of cores without a task."""
    current, baseline = (duration(group.wall.idle) for group in (amount.now, amount.before))
    return f"{current} of idle cores while {_where(amount)} ran, before {baseline}"


def driver(before: RunProfile, now: RunProfile, amount: Contribution) -> str:
    """The time without a stage."""
    if not place(amount):
        return f"{duration(now.end_ms)} after the last stage, before {duration(before.end_ms)}"
    return f"{_where(amount)} {_both_times(amount, 'gap', 'began after', 'without a task')}"


def _both_times(amount: Contribution, field: str, did: str, what: str) -> str:
    """A time of a group in both runs; a group of one run has no time in the other, rather than 0."""
    current, baseline = (duration(getattr(group.wall, field)) for group in (amount.now, amount.before))
    if not amount.now.place:
        return f"is gone; before, it {did} {baseline} {what}"
    return f"{did} {current} {what}, {f'before {baseline}' if amount.before.place else 'and is new'}"


def startup(before: RunProfile, now: RunProfile, _: Contribution) -> str:
    """The time to the first stage."""
    return f"the first stage began after {duration(now.startup_ms)}, before {duration(before.startup_ms)}"


def work(_: RunProfile, __: RunProfile, amount: Contribution) -> str:
    """The work that only one run has."""
    group = amount.now if amount.now.place else amount.before
    return f"{_where(amount)}, {quantity(group.tasks, 'task')}"


class Wording(NamedTuple):
    """The texts of a kind of cause.

    Attributes:
        more, less: Its name where it made the run slower, and where it made it faster; empty if it never does.
        evidence: The numbers of the group with the largest amount.
        advice: What to do, with `{memory}` for `memory_settings.memory`; empty if it only makes runs faster.
        settings: A pattern of the properties that affect it.
    """

    more: str
    less: str
    evidence: Evidence
    advice: str
    settings: str = r"(?!)"


def sentence(
    kind: Kind, amounts: Sequence[Contribution], before: RunProfile, now: RunProfile, changed: Sequence[Setting]
) -> str:
    """One sentence about all amounts of a kind, the largest first."""
    ms = sum(amount.ms for amount in amounts)
    wording = WORDING[kind]
    name, numbers = wording.more if ms > 0 else wording.less, wording.evidence(before, now, amounts[0])
    others = len({place(amount) for amount in amounts} - {place(amounts[0]), ""})
    clauses = [f"{name}: {numbers}"]
    if others and kind not in OF_ALL:
        rest = f"the rest in {quantity(others, 'other place')}"
        clauses = [f"{name}, most ({seconds(amounts[0].ms)}): {numbers}", rest]
    clauses += [str(each) for each in changed[:MAX_SETTINGS_SAID]]
    more = len(changed) - MAX_SETTINGS_SAID
    return "; ".join([*clauses, *([f"and {quantity(more, 'other setting')} changed"] if more > 0 else [])])


def advice(kind: Kind, amount: Contribution, before: RunProfile, now: RunProfile) -> str:
    """The advice about a kind of cause that made a run slower, by its largest amount."""
    if kind == "plan" and not plan_changes(before, now)[place(amount)].has_joins:
        return OTHER_OPERATORS
    return WORDING[kind].advice.format(memory=memory_settings.memory(now.settings))


def related(kind: Kind, changed: Iterable[Setting]) -> list[Setting]:
    """The changed settings that affect a kind of cause."""
    pattern = re.compile(WORDING[kind].settings)
    return [each for each in changed if pattern.search(each.name)]


OTHER_OPERATORS: Final = "compare both plans in the reports (SQL), and check whether the added operators are intended"
"""The advice about a plan whose joins did not change."""
_CORES: Final = r"^spark\.(master|cores\.max|task\.cpus|executor\.(cores|instances)|dynamicAllocation\.)"
_MEMORY: Final = r"memory|\.extraJavaOptions$|\.cores$|^spark\.master$|[sS]pill"
_PARTITIONS: Final = r"artitions|PartitionSize|PartitionBytes|parallelism|\.adaptive\.|^spark\.master$"

WORDING: Final[dict[Kind, Wording]] = {
    "input": Wording("more input", "less input", volume, "check whether the data was expected to grow"),
    "skew": Wording(
        "a hot key or uneven partitions", "more even partitions", skew,
        "keep spark.sql.adaptive.skewJoin.enabled=true; salt the key", r"skewJoin|\.adaptive\.",
    ),
    "cores": Wording("fewer cores", "more cores", cores,
        "find who holds the cores, and check spark.master, spark.cores.max, spark.executor.instances, quotas",
        _CORES,
    ),
    "executors": Wording(
        "lost executors", "", executors,
        "read in the logs of the executor and its host why each was lost: memory, preemption, a full disk",
        r"memory|dynamicAllocation|decommission",
    ),
    "retries": Wording(
        "repeated work", "less repeated work", retries,
        "read the errors of the failed tasks", r"speculation|maxFailures",
    ),
    "spill": Wording(
        "spill", "", spill,
        "raise {memory}, or raise spark.sql.shuffle.partitions for smaller partitions", _MEMORY,
    ),
    "gc": Wording(
        "garbage collection", "less garbage collection", spent("gc", "in garbage collection"),
        "raise {memory}, or cache less", _MEMORY,
    ),
    "plan": Wording(
        "a different plan", "a different plan", plan,
        "compare both plans in the reports (SQL); to broadcast a small table, add a hint: "
        "large.join(F.broadcast(small), ...)",
        r"oin|roadcast|cbo|\.adaptive\.|statistics|optimizer",
    ),
    "storage": Wording(
        "slower storage", "faster storage", storage,
        "check the latency and the limits of the storage",
        r"^spark\.(hadoop|sql\.files)\.",
    ),
    "python": Wording(
        "more time in Python", "less time in Python", python,
        "use pyspark.sql.functions instead, or F.pandas_udf, which is called once for thousands of rows; or profile "
        "them line by line: spark.sql.pyspark.udf.profiler=perf, then spark.profile.show()",
        r"ython|arrow",
    ),
    "machine": Wording(
        "more waiting", "less waiting", machine,
        "check what else runs on the hosts, and what the tasks wait for: a CPU, a disk, other services",
    ),
    "queueing": Wording(
        "queueing", "less queueing", waiting,
        "find what held the cores: other jobs of the application (spark.scheduler.mode=FAIR shares them), or "
        "other applications (run at another time)", _CORES + r"|scheduler",
    ),
    "tasks": Wording(
        "different partitioning", "different partitioning", tasks,
        "aim at tasks of about 100 MiB and some seconds: spark.sql.shuffle.partitions after a shuffle, "
        "spark.sql.files.maxPartitionBytes for files", _PARTITIONS,
    ),
    "processor": Wording(
        "more CPU time", "less CPU time", spent("cpu", "on CPUs"),
        "check for changed code, and for a slower host type", r"codegen|ansi|compress",
    ),
    "shuffle": Wording(
        "a slower shuffle", "a faster shuffle", spent("shuffle_wait", "waiting for blocks of a shuffle"),
        "check the network, and look for overloaded executors", r"shuffle|network",
    ),
    "scheduling": Wording(
        "slower scheduling", "faster scheduling", spent("overhead", "on the way to and from executors"),
        "check the load of the driver, and the size of closures and results", r"locality|scheduler|serializer",
    ),
    "balance": Wording(
        "idle cores", "fewer idle cores", idle,
        "split the work into more, evenly sized tasks: repartition, or spark.sql.shuffle.partitions", _PARTITIONS,
    ),
    "driver": Wording(
        "more time without tasks", "less time without tasks", driver,
        "check what the driver does between jobs: plan, list and commit files, collect, call other services",
    ),
    "startup": Wording(
        "a later start", "an earlier start", startup,
        "check what the program does before its first job: load jars, list files, call other services",
    ),
    "new": Wording("new work", "", work, "check whether the new stages are intended"),
    "gone": Wording("", "removed work", work, ""),
}  # fmt: skip
