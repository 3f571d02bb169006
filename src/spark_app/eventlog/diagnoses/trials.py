"""The settings that may help against a cause: what to set, by what the event log shows, and why.

A trial is no promise: only the runs with it tell whether it helps.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from spark_app.eventlog.diagnoses import settings_advice as advice
from spark_app.eventlog.model import memory_settings
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.vocabulary.spark_settings import is_local

MIB: Final = 1 << 20
GIB: Final = 1 << 30
PARTITION_BYTES: Final = 64 * MIB
"""The size of a shuffle partition to aim at: Spark's default of `spark.sql.adaptive.advisoryPartitionSizeInBytes`."""
MAX_OF_HOST: Final = 0.5
"""The share of the host's memory that a trial may give a JVM. Project: Python and the kernel need the rest."""
MAX_BROADCAST: Final = 256 * MIB
"""A larger threshold is not tried: driver and executors hold such tables. Project."""
FILE_PARTITION: Final = "spark.sql.files.maxPartitionBytes"
FILE_PARTITION_DEFAULT: Final = "128MB"
ARROW_UDF: Final = "spark.sql.execution.pythonUDF.arrow.enabled"
REUSE: Final = "spark.python.worker.reuse"
SERIALIZER: Final = "spark.serializer"
KRYO: Final = "org.apache.spark.serializer.KryoSerializer"
INSTANCES: Final = "spark.executor.instances"
EXECUTOR_CORES: Final = "spark.executor.cores"
FILE_RECORDS: Final = "spark.sql.files.maxRecordsPerFile"

Goal = Literal["time", "cost"]


@dataclass(frozen=True, slots=True)
class Sign:
    """What speaks for a setting: a finding or a statistic.

    Attributes:
        name: Of the rule, or of the statistic.
        numbers: The evidence.
        cost_ms: What it costs at most in wall-clock time; None where that is not known.
        cause, stage: Of a finding.
    """

    name: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    cost_ms: float | None = None
    cause: str = ""
    stage: tuple[int, int] | None = None


class Evidence:
    """What trials ask of an application."""

    def __init__(self, app: Application, host_bytes: int | None = None) -> None:
        """Takes the memory of the host, which is this one unless it is given."""
        self.app = app
        self.host_bytes = host_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    @cached_property
    def settings(self) -> dict[str, str]:
        """The settings of the application, and what its sessions have changed."""
        changed = [query.settings for query in self.app.queries.values()]
        return self.app.properties | {key: value for each in changed for key, value in each.items()}

    @cached_property
    def cores(self) -> int:
        """How many tasks can run at once."""
        return max(1, round(self.app.slots or 1))

    def stages(self, *, of_sql: bool) -> list[StageAttempt]:
        """The stages that read a shuffle, of queries or of RDDs."""
        stages = [stage for stage in self.app.stages.values() if stage.totals.shuffle_read_records]
        return [each for each in stages if (self.app.query_of(self.app.job_of(each)) is not None) == of_sql]

    @property
    def partitions(self) -> int:
        """Of a shuffle of SQL, before adaptive execution merges them."""
        text = self.settings.get(advice.PARTITIONS, advice.DEFAULTS[advice.PARTITIONS])
        return int(text) if text.isdecimal() else 0

    @cached_property
    def largest_shuffle(self) -> int:
        """Bytes of the largest shuffle of SQL."""
        return max((stage.totals.shuffle_read_bytes for stage in self.stages(of_sql=True)), default=0)


def has_arrow(evidence: Evidence, name: str) -> bool:
    """Whether a switch for Arrow is on; also where the log has no version to know the default by."""
    return advice.has_arrow(evidence.settings, evidence.app, name)


def _on(name: str) -> Callable[[Evidence, Sign], str | None]:
    """Turns a switch on, where it is off."""
    return lambda evidence, _: "true" if advice.is_off(evidence.settings, name) else None


def _always(value: str) -> Callable[[Evidence, Sign], str | None]:
    return lambda _evidence, _sign: value


def _arrow_udfs(evidence: Evidence, _: Sign) -> str | None:
    """Arrow for Python UDFs, where it is off: where it is on, Spark has found a UDF that cannot use it."""
    return None if has_arrow(evidence, ARROW_UDF) else "true"


def _partitions(evidence: Evidence, _: Sign) -> str | None:
    """As many partitions as the largest shuffle needs, in whole turns of all cores."""
    needed = math.ceil(evidence.largest_shuffle / PARTITION_BYTES) if evidence.largest_shuffle else 0
    return str(evidence.cores * max(1, math.ceil(needed / evidence.cores))) if needed else None


def _more_partitions(evidence: Evidence, sign: Sign) -> str | None:
    """More partitions, so that each fits in memory; None where they are small already."""
    wanted = int(_partitions(evidence, sign) or 0)
    return str(max(wanted, 2 * evidence.partitions)) if wanted > evidence.partitions / 2 else None


def _parallelism(evidence: Evidence, _: Sign) -> str | None:
    return str(evidence.cores)


def _not_adaptive(evidence: Evidence, _: Sign) -> str | None:
    return None if advice.is_off(evidence.settings, advice.ADAPTIVE) else "false"


def _skewed_bytes(evidence: Evidence, sign: Sign) -> str | None:
    """A threshold that the largest partition is above, where adaptive execution splits some."""
    largest = sign.numbers.get("longest_task_bytes", 0)
    if sign.cause != "key" or not largest or _switched_off(evidence):
        return None
    return f"{max(1, int(largest / 4 / MIB))}m"


def _switched_off(evidence: Evidence) -> bool:
    return any(advice.is_off(evidence.settings, name) for name in (advice.ADAPTIVE, advice.SKEW_JOIN))


def _broadcast(evidence: Evidence, sign: Sign) -> str | None:
    """A threshold above the small side. Spark compares rows in memory with it, which are larger than in a shuffle."""
    small = 4 * sign.numbers.get("small_side_bytes", 0)
    wanted = max(10 * MIB, 2 ** math.ceil(math.log2(max(small, 1))))
    now = evidence.settings.get(advice.BROADCAST, advice.DEFAULTS[advice.BROADCAST])
    return f"{int(wanted / MIB)}m" if wanted <= MAX_BROADCAST and wanted > (_bytes(now) or 0) else None


def _no_broadcast(evidence: Evidence, sign: Sign) -> str | None:
    """No automatic broadcast of so large a table."""
    now = _bytes(evidence.settings.get(advice.BROADCAST, advice.DEFAULTS[advice.BROADCAST]))
    return "10m" if now is not None and now > 10 * MIB and sign.numbers.get("broadcast_bytes", 0) > now / 4 else None


def _memory(factor: float) -> Callable[[Evidence, Sign], str | None]:
    """The heap of tasks, larger or smaller by a factor; None beyond the memory of this host in local mode."""

    def value(evidence: Evidence, sign: Sign) -> str | None:
        heap = memory_settings.heap(evidence.settings)
        peak = sign.numbers.get("peak_heap_bytes")
        wanted = None if heap is None else peak * 1.3 if peak and factor < 1 else heap * factor
        if wanted is None or wanted > MAX_OF_HOST * evidence.host_bytes:
            return None
        return f"{math.ceil(wanted / MIB)}m"

    return value


def _fraction(evidence: Evidence, _: Sign) -> str | None:
    """The default where it is lower, else more for execution."""
    text = evidence.settings.get(advice.MEMORY_FRACTION, advice.DEFAULTS[advice.MEMORY_FRACTION])
    try:
        now = float(text)
    except ValueError:
        return None
    return "0.6" if now < 0.6 else "0.8" if now < 0.8 else None


def _file_partition(factor: float) -> Callable[[Evidence, Sign], str | None]:
    """Larger or smaller parts of files for a task."""

    def value(evidence: Evidence, sign: Sign) -> str | None:
        now, stage = _bytes(evidence.settings.get(FILE_PARTITION, FILE_PARTITION_DEFAULT)), sign.stage
        totals = evidence.app.stages[stage].totals if stage in evidence.app.stages else None
        reads_files = totals is None or (totals.input_bytes > 0 and not totals.shuffle_read_records)
        return f"{max(1, int(now * factor / MIB))}m" if now and reads_files else None

    return value


def _smaller_file_partition(evidence: Evidence, sign: Sign) -> str | None:
    """Smaller parts of files for a task, unless something else is known to make few tasks."""
    return None if sign.cause else _file_partition(1 / 8)(evidence, sign)


def _fewer_executors(evidence: Evidence, _: Sign) -> str | None:
    """As many executors as were busy on average, and one more."""
    known, usage = len(evidence.app.executors), evidence.app.usage
    if not evidence.settings.get(INSTANCES, "").isdecimal() or not usage.core_ms:
        return None
    wanted = math.ceil(known * usage.task_ms * evidence.app.task_cpus / usage.core_ms) + 1
    return str(wanted) if wanted < int(evidence.settings[INSTANCES]) else None


def _kryo(evidence: Evidence, _: Sign) -> str | None:
    return None if SERIALIZER in evidence.settings else KRYO


def _bytes(text: str) -> int | None:
    """A size whose unit is a byte where it has none; None where it is no size, as -1."""
    return int(text) if text.strip().isdecimal() else memory_settings.size_of(text)


def _half_the_cores(evidence: Evidence, _: Sign) -> str | None:
    """Half the tasks at once in each executor, where its cores are set and there are several."""
    now = evidence.settings.get(EXECUTOR_CORES, "")
    if is_local(evidence.settings) or not now.isdecimal() or int(now) < 2 * evidence.app.task_cpus:
        return None
    return str(int(now) // 2)


def _no_limit_of_rows(evidence: Evidence, _: Sign) -> str | None:
    """No limit of the rows of a file, where there is one: 0 is Spark's default."""
    now = evidence.settings.get(FILE_RECORDS, "0").strip()
    return "0" if now.isdecimal() and int(now) > 0 else None


MEMORY: Final = "{memory}"
"""Stands for the setting of the heap of tasks: that of the driver in local mode."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A setting to try.

    Attributes:
        setting: The Spark property.
        value: What to set; None where nothing is to be tried.
        why: A sentence for a person.
        goal: What it is to save.
    """

    setting: str
    value: Callable[[Evidence, Sign], str | None]
    why: str
    goal: Goal = "time"


ADAPTIVE: Final = Trial(
    advice.ADAPTIVE,
    _on(advice.ADAPTIVE),
    "adaptive execution merges small shuffle partitions, splits skewed ones and broadcasts small sides",
)
NOT_ADAPTIVE: Final = Trial(
    advice.ADAPTIVE,
    _not_adaptive,
    "short queries are planned once, not stage by stage",
)
MERGE_PARTITIONS: Final = Trial(advice.COALESCE, _on(advice.COALESCE), "Spark merges small shuffle partitions")
FEWER_PARTITIONS: Final = Trial(
    advice.PARTITIONS,
    _partitions,
    "shuffle partitions are small: fewer of them cost less to schedule, write and read",
)
MORE_PARTITIONS: Final = Trial(advice.PARTITIONS, _more_partitions, "smaller shuffle partitions fit in memory")
RDD_PARTITIONS: Final = Trial(
    advice.PARALLELISM,
    _parallelism,
    "shuffles of RDDs get so many partitions, instead of those of what they read",
)
KRYO_OBJECTS: Final = Trial(SERIALIZER, _kryo, "Kryo writes JVM objects of RDDs smaller and faster")
SPLIT_SKEWED: Final = Trial(advice.SKEW_JOIN, _on(advice.SKEW_JOIN), "Spark splits skewed partitions of joins")
SMALLER_SKEWED: Final = Trial(
    advice.SKEW_BYTES,
    _skewed_bytes,
    "Spark splits partitions of joins from this size on",
)
BROADCAST: Final = Trial(
    advice.BROADCAST,
    _broadcast,
    "the small side of a join is sent to all tasks, and the large side is not shuffled",
)
NO_BROADCAST: Final = Trial(advice.BROADCAST, _no_broadcast, "a large table is not broadcast")
LARGER_FRACTION: Final = Trial(advice.MEMORY_FRACTION, _fraction, "tasks get a larger part of the heap")
MORE_HEAP: Final = Trial(MEMORY, _memory(2), "tasks get more heap")
LESS_HEAP: Final = Trial(MEMORY, _memory(0.5), "no executor used much of its heap", "cost")
FEWER_CORES: Final = Trial(
    EXECUTOR_CORES,
    _half_the_cores,
    "fewer tasks share the heap and the processors of an executor",
    "cost",
)
FEWER_EXECUTORS: Final = Trial(INSTANCES, _fewer_executors, "cores were idle", "cost")
NO_LIMIT_OF_ROWS: Final = Trial(FILE_RECORDS, _no_limit_of_rows, "a task begins no new file after so many rows")
LARGER_FILE_PARTITIONS: Final = Trial(FILE_PARTITION, _file_partition(4), "a task reads more files at once")
SMALLER_FILE_PARTITIONS: Final = Trial(
    FILE_PARTITION,
    _smaller_file_partition,
    "more tasks share the reading of files",
)
ARROW_UDFS: Final = Trial(ARROW_UDF, _arrow_udfs, "rows go to Python in Arrow batches, not pickled one by one")
ARROW_ROWS: Final = Trial(advice.ARROW, _always("true"), "toPandas gets Arrow batches, not rows pickled one by one")
REUSED_WORKERS: Final = Trial(REUSE, _always("true"), "tasks use the Python worker of an earlier task")
