"""What is said of each kind of cause: one sentence with its numbers, and what to do about it."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from app.amounts import things
from app.eventlog.comparison import evidence
from app.eventlog.comparison.attribution import Amount, Kind
from app.eventlog.comparison.record import Summary
from app.eventlog.diagnoses import sizing, words

Changed = dict[str, tuple[str | None, str | None]]
SETTINGS_SAID: Final = 3
"""Changed settings that a sentence names; the comparison has all."""

OF_ALL: Final[tuple[Kind, ...]] = ("cores", "executors", "startup")
"""Kinds whose numbers are of the whole run."""


class Wording(NamedTuple):
    """How a kind of cause is told.

    Attributes:
        more, less: What it is called where it made the run slower, and where it made it faster; empty where it never
            does.
        evidence: The numbers, of the group where most of it happened.
        advice: What to do about it, with a place for `sizing.memory`; empty where it only makes runs faster.
        settings: Which properties have a say in it.
    """

    more: str
    less: str
    evidence: evidence.Evidence
    advice: str
    settings: str = r"(?!)"


def sentence(kind: Kind, found: Sequence[Amount], before: Summary, now: Summary, changed: Changed) -> str:
    """One sentence about all amounts of a kind, the largest first."""
    ms = sum(amount.ms for amount in found)
    wording = WORDING[kind]
    name, numbers = wording.more if ms > 0 else wording.less, wording.evidence(before, now, found[0])
    others = len({evidence.place(amount) for amount in found} - {evidence.place(found[0]), ""})
    told = [f"{name}: {numbers}"]
    if others and kind not in OF_ALL:
        rest = f"the rest in {things(others, 'other place')}"
        told = [f"{name}, most ({evidence.seconds(found[0].ms)}): {numbers}", rest]
    told += [_of_setting(name, *values) for name, values in list(changed.items())[:SETTINGS_SAID]]
    more = len(changed) - SETTINGS_SAID
    return "; ".join([*told, *([f"and {things(more, 'other setting')} changed"] if more > 0 else [])])


def advice(kind: Kind, now: Summary) -> str:
    """What to do about a kind of cause that made a run slower."""
    return WORDING[kind].advice.format(memory=sizing.memory(now.settings))


def related(kind: Kind, changed: Changed) -> Changed:
    """The changed settings that have a say in a kind of cause."""
    pattern = re.compile(WORDING[kind].settings)
    return {name: values for name, values in changed.items() if pattern.search(name)}


def _of_setting(name: str, before: str | None, now: str | None) -> str:
    return f"{words.cut(name, 100)} is {words.cut(now or 'not set', 60)}, before {words.cut(before or 'not set', 60)}"


_CORES: Final = r"^spark\.(master|cores\.max|task\.cpus|executor\.(cores|instances)|dynamicAllocation\.)"
_MEMORY: Final = r"memory|\.extraJavaOptions$|\.cores$|^spark\.master$|[sS]pill"
_PARTITIONS: Final = r"artitions|PartitionSize|PartitionBytes|parallelism|\.adaptive\.|^spark\.master$"

WORDING: Final[dict[Kind, Wording]] = {
    "input": Wording("more input", "less input", evidence.volume, "see whether the data is meant to have grown"),
    "skew": Wording(
        "a hot key or uneven partitions", "more even partitions", evidence.skew,
        "leave spark.sql.adaptive.skewJoin.enabled on; salt the key, or treat its rows apart", r"skewJoin|\.adaptive\.",
    ),
    "cores": Wording("fewer cores", "more cores", evidence.cores,
        "look for who has them, and at the limits: spark.master, spark.cores.max, spark.executor.instances, quotas",
        _CORES,
    ),
    "executors": Wording(
        "lost executors", "", evidence.executors,
        "read in its log and in that of its host why each went: memory, preemption, a full disk",
        r"memory|dynamicAllocation|decommission",
    ),
    "retries": Wording(
        "work done again", "less work done again", evidence.retries,
        "read the errors of the failed tasks", r"speculation|maxFailures",
    ),
    "spill": Wording(
        "spill", "", evidence.spill,
        "raise {memory}, or spark.sql.shuffle.partitions: smaller parts fit", _MEMORY,
    ),
    "gc": Wording(
        "garbage collection", "less garbage collection", evidence.spent("gc", "in the collector"),
        "raise {memory}, or cache less", _MEMORY,
    ),
    "plan": Wording(
        "another plan", "another plan", evidence.plan,
        "compare both plans in the reports (SQL); if a join changed, ask for it: large.join(F.broadcast(small), ...)",
        r"oin|roadcast|cbo|\.adaptive\.|statistics|optimizer",
    ),
    "storage": Wording(
        "slower storage", "faster storage", evidence.spent("other", "waiting, and not for a shuffle"),
        "look at what it reads from, its latency and its limits; at its Python functions, if it has any",
        r"^spark\.(hadoop|sql\.files)\.",
    ),
    "python": Wording(
        "slower Python", "faster Python", evidence.spent("other", "outside of the JVM"),
        "look at what its functions call; spark.sql.pyspark.udf.profiler=perf and spark.profile.show() tell the lines",
        r"ython|arrow",
    ),
    "machine": Wording(
        "a busier machine", "a calmer machine", evidence.spent("other", "waiting, and not for a shuffle"),
        "look at what else the hosts do: tasks waited for a processor or a disk",
    ),
    "queueing": Wording(
        "queueing", "less queueing", evidence.waiting,
        "look at who held the cores: other jobs of the application (spark.scheduler.mode=FAIR shares them out), or "
        "other applications (another time of day)", _CORES + r"|scheduler",
    ),
    "tasks": Wording(
        "other partitions", "other partitions", evidence.tasks,
        "aim at tasks of some 100 MiB and some seconds: spark.sql.shuffle.partitions behind a shuffle, "
        "spark.sql.files.maxPartitionBytes at files", _PARTITIONS,
    ),
    "processor": Wording(
        "more processor time", "less processor time", evidence.spent("cpu", "on processors"),
        "look for changed code, and for a slower kind of host", r"codegen|ansi|compress",
    ),
    "shuffle": Wording(
        "a slower shuffle", "a faster shuffle", evidence.spent("shuffle_wait", "waiting for blocks of a shuffle"),
        "look at the network, and for executors that are overloaded", r"shuffle|network",
    ),
    "scheduling": Wording(
        "slower scheduling", "faster scheduling", evidence.spent("overhead", "on the way to and from executors"),
        "look at the load of the driver, and at the size of closures and results", r"locality|scheduler|serializer",
    ),
    "balance": Wording(
        "idle cores", "fewer idle cores", evidence.idle,
        "cut the work into more and more even tasks: repartition, or spark.sql.shuffle.partitions", _PARTITIONS,
    ),
    "driver": Wording(
        "the driver alone", "less of the driver alone", evidence.driver,
        "look at what the driver does between jobs: plan, list and commit files, collect, ask other services",
    ),
    "startup": Wording(
        "a later start", "an earlier start", evidence.startup,
        "look at what the program does ahead of its first job: jars to load, files to list, other services",
    ),
    "new": Wording("new work", "", evidence.work, "see whether it is meant to be there: it was not before"),
    "gone": Wording("", "work that is gone", evidence.work, ""),
}  # fmt: skip
