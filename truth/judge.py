"""What spark-app finds in the runs, in the format that the score reads: `truth/README.md`."""

from pathlib import Path
from typing import Final

import msgspec

from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from truth.answers import Where
from truth.declared import LOGS
from truth.scores import Named, Output

CAUSES: Final = {
    "partition_skew": "skew",
    "tiny_tasks": "too_many_partitions",
    "too_few_tasks": "too_few_partitions",
    "retried_stage": "lost_shuffle",
    "lost_executors": "lost_executor",
    "sort_merge_join_could_broadcast": "broadcast_missing",
    "large_broadcast": "broadcast_too_large",
    "cross_join": "cartesian_join",
    "partition_filter_missing": "unpruned_partitions",
    "batch_longer_than_trigger": "late_batches",
}
"""The cause that a rule stands for; the other rules have the name of theirs."""


def output(logs: Path = LOGS) -> bytes:
    """What is found in all logs, with the thresholds as they are shipped."""
    found = {log.stem: _found(log) for log in sorted(logs.glob("*.zst"))}
    return msgspec.json.encode(Output("spark-app", found))


def _found(log: Path) -> list[Named]:
    """The causes that are named; what is said to be a consequence of one is no cause."""
    return [_named(finding) for finding in diagnose(reader.read(log).app, Thresholds()) if finding.because is None]


def _named(finding: Finding) -> Named:
    places = finding.places or (finding.place,)
    where = Where(
        queries=[place.query for place in places if place.query is not None],
        stages=[place.stage[0] for place in places if place.stage is not None],
    )
    cause = CAUSES.get(finding.rule, finding.rule)
    return Named(cause, where, finding.cost_ms, finding.cost_low_ms, finding.cost_high_ms)
