"""Which settings may help an application: by its findings, and by statistics of its event log."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from spark_app.eventlog.diagnoses import settings_advice as advice
from spark_app.eventlog.diagnoses import trials
from spark_app.eventlog.diagnoses.rule import rule_of
from spark_app.eventlog.diagnoses.settings_advice import ARROW
from spark_app.eventlog.diagnoses.trials import (
    MEMORY,
    MIB,
    PARTITION_BYTES,
    REUSE,
    Evidence,
    Goal,
    Sign,
    Trial,
    has_arrow,
)
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import call_sites, memory_settings
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt

SMALL_PARTITION: Final = MIB
"""Shuffle partitions below this cost more to schedule than to read: Spark's default of
`spark.sql.adaptive.coalescePartitions.minPartitionSize`."""
SHORT_TASK_MS: Final = 500
"""As `tiny_median_ms` of the diagnoses."""
SHORT_QUERY_MS: Final = 1000
MANY_QUERIES: Final = 20
"""From so many short queries on, planning counts. Project."""
MIN_TO_PANDAS: Final = MIB
"""Fewer bytes of a `toPandas` take no time in either way. Project."""
PYTHON_RDDS: Final = frozenset({"PythonRDD", "PairwiseRDD"})
"""RDDs of PySpark: what they shuffle are bytes that Python has pickled."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setting to try.

    Attributes:
        setting: The Spark property.
        value: To try.
        now: That of the application; None where it is not set.
        why: A sentence.
        sign: The finding or statistic.
        predicted_ms: What it saves at most, by the estimate of the finding; None without one.
        goal: What it is to save.
    """

    setting: str
    value: str
    now: str | None
    why: str
    sign: str
    predicted_ms: float | None
    goal: Goal = "time"


def signs(evidence: Evidence, findings: Sequence[Finding]) -> Iterator[tuple[Sign, tuple[Trial, ...]]]:
    """The findings, and then the statistics, each with what is to be tried because of it."""
    for finding in findings:
        sign = Sign(finding.rule, finding.numbers, finding.cost_ms, finding.cause, finding.stage)
        yield sign, rule_of(finding.rule).tries
    for statistic, tries in STATISTICS.items():
        yield from ((sign, tries) for sign in statistic(evidence))


def _small_shuffle_partitions(evidence: Evidence) -> Iterator[Sign]:
    """Partitions of SQL shuffles are far smaller than a core reads in a moment."""
    largest, partitions = evidence.largest_shuffle, evidence.partitions
    if largest and partitions > 2 * evidence.cores and largest / partitions < SMALL_PARTITION:
        yield Sign("small_shuffle_partitions", {"shuffle_bytes": largest, "partitions": partitions})


def _large_shuffle_partitions(evidence: Evidence) -> Iterator[Sign]:
    largest, partitions = evidence.largest_shuffle, evidence.partitions
    if partitions and largest / partitions > 3 * PARTITION_BYTES:
        yield Sign("large_shuffle_partitions", {"shuffle_bytes": largest, "partitions": partitions})


def _small_rdd_partitions(evidence: Evidence) -> Iterator[Sign]:
    """Shuffles of RDDs have many short tasks; without a setting each join and union makes more of them."""
    stages = evidence.stages(of_sql=False)
    most = max((len(stage.durations_ms) for stage in stages), default=0)
    times = [ms for stage in stages for ms in stage.durations_ms]
    if most > 2 * evidence.cores and median(times) < SHORT_TASK_MS:
        yield Sign("small_rdd_partitions", {"tasks": most, "median_task_ms": median(times)})


def _rdd_shuffle(evidence: Evidence) -> Iterator[Sign]:
    """RDDs shuffle objects of the JVM, which `spark.serializer` writes."""
    stages = [stage for stage in evidence.stages(of_sql=False) if not _reads_pickled(evidence.app, stage)]
    moved = sum(stage.totals.shuffle_read_bytes for stage in stages)
    if moved > MIB:
        yield Sign("rdd_shuffle", {"shuffle_bytes": moved})


def _reads_pickled(app: Application, stage: StageAttempt) -> bool:
    """Whether Python is on either side of the shuffle that a stage reads."""
    sides = [stage, *(each for each in app.stages.values() if each.info.id in stage.info.parents)]
    return any(rdd.name in PYTHON_RDDS for each in sides for rdd in each.info.rdds)


def _adaptive_off(evidence: Evidence) -> Iterator[Sign]:
    if evidence.largest_shuffle and advice.is_off(evidence.settings, advice.ADAPTIVE):
        yield Sign("adaptive_off")


def _many_short_queries(evidence: Evidence) -> Iterator[Sign]:
    """A loop runs many short queries with shuffles: adaptive execution plans each stage of them anew."""
    queries = [each for each in evidence.app.queries.values() if each.ended is not None]
    times = [(each.ended or 0) - each.started for each in queries]
    if len(times) >= MANY_QUERIES and median(times) < SHORT_QUERY_MS and evidence.largest_shuffle:
        yield Sign("many_short_queries", {"queries": len(times), "median_query_ms": median(times)})


def _rows_to_pandas(evidence: Evidence) -> Iterator[Sign]:
    """The driver of PySpark gets the rows of `toPandas` pickled one by one."""
    if has_arrow(evidence, ARROW):
        return
    queries = [each for each in evidence.app.queries.values() if _call(each.description) == "toPandas"]
    moved = sum(stage.totals.result_bytes for query in queries for stage in evidence.app.stages_of(query))
    if moved >= MIN_TO_PANDAS:
        yield Sign("rows_to_pandas", {"result_bytes": moved})


def _call(description: str) -> str | None:
    site = call_sites.parse(description)
    return None if site is None else site.action


def _no_worker_reuse(evidence: Evidence) -> Iterator[Sign]:
    if evidence.settings.get(REUSE, "true").lower() == "false":
        yield Sign("no_worker_reuse")


STATISTICS: Final[dict[Callable[[Evidence], Iterator[Sign]], tuple[Trial, ...]]] = {
    _adaptive_off: (trials.ADAPTIVE,),
    _small_shuffle_partitions: (trials.FEWER_PARTITIONS,),
    _large_shuffle_partitions: (trials.MORE_PARTITIONS,),
    _small_rdd_partitions: (trials.RDD_PARTITIONS,),
    _rdd_shuffle: (trials.KRYO_OBJECTS,),
    _many_short_queries: (trials.NOT_ADAPTIVE,),
    _rows_to_pandas: (trials.ARROW_ROWS,),
    _no_worker_reuse: (trials.REUSED_WORKERS,),
}
"""What the log shows beside the findings of rules, and what is to be tried because of it."""


def candidates(app: Application, findings: Sequence[Finding], host_bytes: int | None = None) -> list[Candidate]:
    """The settings to try, those with the highest predicted saving first; each setting and value once.

    Args:
        app: The application.
        findings: About all of it.
        host_bytes: The memory of the host; None for this one.
    """
    evidence = Evidence(app, host_bytes)
    found: dict[tuple[str, str], Candidate] = {}
    for sign, tries in signs(evidence, findings):
        for trial in tries:
            value = trial.value(evidence, sign)
            setting = memory_settings.memory(evidence.settings) if trial.setting == MEMORY else trial.setting
            now = evidence.settings.get(setting)
            if value is not None and value != now and (setting, value) not in found:
                found[setting, value] = Candidate(setting, value, now, trial.why, sign.name, sign.cost_ms, trial.goal)
    return sorted(found.values(), key=lambda each: -(each.predicted_ms or 0))


def in_force(app: Application, settings: Mapping[str, str]) -> str | None:
    """Which setting of a run was not in force, and why; None if all were.

    The log has what the application started with, and what its sessions changed: only its own code overrides.
    """
    for name, value in settings.items():
        started = app.properties.get(name)
        if started != value:
            return f"not in force: the program or its launcher sets {name}" + (f" to {started}" if started else "")
        changed = {query.settings[name] for query in app.queries.values() if name in query.settings} - {value}
        if changed:
            return f"not in force: the program sets {name} to {', '.join(sorted(changed))} in its session"
    return None
