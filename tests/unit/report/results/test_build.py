from pathlib import Path
from typing import Any

import msgspec

from spark_app.eventlog.findings import Finding
from spark_app.report import run_info
from spark_app.report.results import build
from spark_app.report.results.schema import Application
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.report.conftest import Read, record_of

SECRET = "hunter2"


def built(reading: Read, lines: Any, *findings: Finding) -> Application:
    """What the document says of the application of some lines."""
    return build.application(reading(lines), None, list(findings), None, report="r.html")


def test_what_no_task_reported_is_null_and_not_0(reading: Read) -> None:
    """An application without tasks read an unknown number of rows."""
    figures = built(reading, [log.started(), log.ended()]).figures
    assert (figures.rows_read, figures.spilled_bytes, figures.gc_ratio, figures.cores) == (None, None, None, None)
    assert (figures.duration_ms, figures.tasks) == (8000, 0)


def test_bytes_that_a_source_does_not_count_are_null(reading: Read) -> None:
    """In a stage as in the sums over all of them."""
    lines = [log.started(), log.job(0, [0]), made.submitted(0, 2000, 1, "scan")]
    lines += [made.ended_task(0, 0, 2000, 50), made.submitted(0, 2000, 1, "scan", end=2100), log.ended()]
    metrics: Any = lines[3]["Task Metrics"]
    metrics["Input Metrics"] = {"Bytes Read": 0, "Records Read": 100}
    about = built(reading, lines)
    data = about.stages[0].data
    assert data is not None
    assert (about.figures.rows_read, about.figures.bytes_read) == (data.rows_read, data.bytes_read) == (100, None)


def test_secrets_and_control_characters_are_nowhere(reading: Read) -> None:
    """Neither in names and errors, nor in findings, comparisons and labels."""
    hostile = f"load jdbc:db?password={SECRET} \x1b[31m\x07"
    found = Finding("spill", "warning", hostile, hostile, operator=hostile, stream=hostile)
    lines = [*made.large(stages=2, tasks=2, queries=1, text=hostile)]
    lines += [log.job(9, [9]), log.job_ended(9, error=hostile), log.query(9), log.query_ended(9, error=hostile)]
    lines[1] |= {"App Name": hostile}
    about = build.application(
        reading(lines),
        None,
        [found],
        made.comparison(hostile),
        report=f"http://me:{SECRET}@reports/r.html",
        labels={"team": hostile},
    )
    text = msgspec.json.encode(about).decode()
    assert SECRET not in text
    assert "\\u001b" not in text
    assert text.count("password=(redacted)") > 10


def test_a_large_hostile_application_stays_small(reading: Read) -> None:
    """Stages and queries are limited as in the report, and texts are cut; the figures count all."""
    about = built(reading, made.large(stages=700, tasks=700, queries=300, text=made.HOSTILE))
    assert (about.figures.stages, len(about.stages)) == (700, 500)
    assert (about.figures.queries, len(about.queries)) == (300, 200)
    assert len(msgspec.json.encode(about)) < 1_000_000


def test_a_run_has_its_own_outcome_and_part(reading: Read, run_folder: Path) -> None:
    """Not those of the application that it shares with other runs."""
    record_of(run_folder, outcome="rejected")
    lines = [*made.large(stages=4, tasks=8, queries=2)]
    about = build.application(reading(lines), run_info.read(run_folder), [], None, report="r.html")
    assert about.run is not None
    assert (about.run.run_id, about.run.pipeline, about.outcome) == (run_folder.name, "etl.x", "rejected")
    assert (about.figures.stages, about.stages) == (0, [])
