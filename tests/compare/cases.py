"""Runs of `job.py`, usual ones and such with one thing out of order, with what should explain them first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from spark_app.eventlog.comparison.attribution import Kind
from spark_app.eventlog.comparison.compare import Comparison


@dataclass(frozen=True)
class Run:
    """One run of the program.

    Attributes:
        name: Of its folder, and of its recorded log.
        planted: What `job.py` is asked to do otherwise.
        properties: Of Spark, beside those that all runs have.
        source_seconds: How long its slow source takes.
        is_kept: Whether its log is recorded.
    """

    name: str
    planted: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    source_seconds: float = 0
    is_kept: bool = True


@dataclass(frozen=True)
class Planted:
    """A run with one thing out of order, the kind of its cause, and the runs without it."""

    run: Run
    kind: Kind
    before: Sequence[Run]

    @property
    def settings(self) -> dict[str, str]:
        """The properties that are other than before: what the cause must name, and no other."""
        return {name: value for name, value in self.run.properties.items() if name not in self.before[0].properties}


USUAL: Final = [Run(f"usual-{number}") for number in range(3)]
EQUAL: Final = [*USUAL, *(Run(f"equal-{number}") for number in range(2))]
AT_EASE: Final = Run("at-ease", {"sorted_rows": 800_000})
LITTLE_AT_ONCE: Final = {
    "spark.shuffle.spill.numElementsForceSpillThreshold": "3200",
    "spark.sql.windowExec.buffer.spill.threshold": "3200",
}
ON_EXECUTORS: Final = {
    "spark.master": "local-cluster[2,2,1024]",
    "spark.executor.memory": "1g",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
}
WHOLE: Final = Run("whole-cluster", {"sales": "more_sales"}, ON_EXECUTORS)

PLANTED: Final = [
    Planted(Run("more-input", {"sales": "more_sales"}), "input", USUAL),
    Planted(Run("hot-key", {"sales": "hot_sales"}), "skew", USUAL),
    Planted(Run("collections", {"collected_every": 120}), "gc", USUAL),
    Planted(Run("failing-tasks", {"is_failing": True}), "retries", USUAL),
    Planted(Run("busy-driver", {"driver_seconds": 12}), "driver", USUAL),
    Planted(Run("other-job", {"occupied_seconds": 12}), "queueing", USUAL),
    Planted(Run("one-core", properties={"spark.master": "local[1,4]"}), "cores", USUAL),
    Planted(Run("greedy-tasks", properties={"spark.task.cpus": "4"}), "cores", USUAL),
    Planted(Run("no-broadcast", properties={"spark.sql.autoBroadcastJoinThreshold": "-1"}), "plan", USUAL),
    Planted(Run("many-partitions", properties={"spark.sql.shuffle.partitions": "2000"}), "tasks", USUAL),
    Planted(Run("slow-source", source_seconds=12), "storage", USUAL),
    Planted(Run("little-memory", AT_EASE.planted, LITTLE_AT_ONCE), "spill", [AT_EASE]),
    Planted(Run("python-function", {"slow_milliseconds": 3}), "python", USUAL),
    Planted(Run("killed-executor", {**WHOLE.planted, "killed_seconds": 4}, ON_EXECUTORS), "executors", [WHOLE]),
]
SAME_JOIN: Final = Run("same-join")
OTHER_JOIN: Final = Run("other-join", {"hint": "shuffle_replicate_nl"})
"""It takes as long: one of the joined tables has one partition, so that each task has the rows that it had before.

Both are run in one process, after another run: how fast a JVM starts makes no difference then.
"""
IN_ONE_PROCESS: Final = (Run("warm-up", is_kept=False), SAME_JOIN, OTHER_JOIN)
RUNS: Final = [*EQUAL, AT_EASE, WHOLE, *(planted.run for planted in PLANTED)]


def assert_first(compared: Comparison, planted: Planted) -> None:
    """What was planted is ranked first, names the properties it comes from, and all causes add up."""
    assert [cause.kind for cause in compared.causes][:1] == [planted.kind], compared.sentences
    assert {each.name: each.now for each in compared.causes[0].settings} == planted.settings
    assert sum(cause.ms for cause in compared.causes) + compared.unexplained_ms == pytest.approx(compared.difference_ms)


def assert_other_join_is_noise(compared: Comparison) -> None:
    """The time is no other, and yet the table of what changed names the joins of both plans."""
    assert not compared.is_significant, compared.sentences
    (plan,) = (change.text for change in compared.changes if change.what == "plan")
    added, _, removed = plan.partition("; removed ")
    assert added.startswith("price the sales: added CartesianProduct")
    assert removed.startswith("BroadcastHashJoin")
