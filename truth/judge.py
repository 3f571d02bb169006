"""What spark-app finds in the runs, in the format that the score reads: `truth/README.md`."""

from pathlib import Path

import msgspec

from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.rule import rule_of
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from truth.answers import Where
from truth.declared import LOGS
from truth.scores import Named, Output


def output(logs: Path = LOGS) -> bytes:
    """What is found in all logs, with the thresholds as they are shipped."""
    found = {log.stem: _found(log) for log in sorted(logs.glob("*.zst"))}
    return msgspec.json.encode(Output("spark-app", found))


def _found(log: Path) -> list[Named]:
    """The causes that are named; what is said to be a consequence of one is no cause."""
    return [_named(finding) for finding in diagnose(reader.read(log).app, Thresholds()) if finding.because is None]


def _named(finding: Finding) -> Named:
    places = finding.found_in
    where = Where(
        queries=[place.query for place in places if place.query is not None],
        stages=[place.stage.id for place in places if place.stage is not None],
    )
    cause = rule_of(finding.rule).cause or finding.rule
    return Named(cause, where, finding.cost_ms, finding.cost_low_ms, finding.cost_high_ms)
