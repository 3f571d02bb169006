from pathlib import Path

import pytest

from app.errors import InputError
from app.records import RECORD
from app.report import runs
from app.report.scope import scope
from app.report.sections.troubles import troubles
from app.telemetry.files import LOGS
from tests.unit.eventlog import log
from tests.unit.report.conftest import TRACE, Read, record_of


def test_a_killed_run_is_told_by_its_notes(run_folder: Path) -> None:
    """Without a record there are its steps, those that only began too; a torn line is left out."""
    run = runs.of(run_folder)
    assert (run.record, run.trace_id, run.ended) == (None, TRACE, None)
    assert [(step.name, step.ended) for step in run.steps] == [("run etl.x", None), ("step write t", 3000)]


def test_what_cannot_be_read_of_a_run_is_said(run_folder: Path, reading: Read) -> None:
    """A torn line, and one that is no UTF-8; what is before them is told."""
    with (run_folder / LOGS).open("ab") as file:
        file.write(b"\xff\xfe\xfd\n")
    run = runs.of(run_folder)
    assert (run.unread, len(run.steps), len(run.warnings)) == (2, 2, 2)
    told = reading([log.started(), log.ended()])
    assert troubles(told, scope(told.app, run)) == ["2 lines in the files of the run cannot be read, and are left out."]


def test_a_run_at_work_has_no_end(run_folder: Path) -> None:
    """A record that says so is not taken for an end after 0 seconds."""
    record_of(run_folder, outcome="running", seconds=0)
    assert (runs.of(run_folder).ended, runs.of(run_folder).is_at_work) == (None, True)


def test_warnings_are_those_of_the_run_and_of_spark_in_its_trace(run_folder: Path, tmp_path: Path) -> None:
    """Neither lower severities nor what Spark says of another run are among them."""
    spark = tmp_path / "spark.jsonl"
    lines = '{"ts":"1970-01-01T00:00:02Z","level":"%s","msg":"%s","context":{"mdc.trace_id":"%s"},"logger":"l"}\n'
    told = [("WARN", "ours", TRACE), ("INFO", "quiet", TRACE), ("ERROR", "another", "b" * 32)]
    spark.write_text("no JSON\n" + "".join(lines % each for each in told))
    record_of(run_folder, spark_log=str(spark))
    assert [line.message for line in runs.of(run_folder).warnings] == ["ours", "rows came late", "rows came late"]


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    """The message says what was looked for."""
    with pytest.raises(InputError, match=r"neither run\.json nor started\.jsonl"):
        runs.of(tmp_path)


def test_a_broken_record_is_refused(run_folder: Path) -> None:
    """The message names the file."""
    (run_folder / RECORD).write_text("{")
    with pytest.raises(InputError, match=r"run\.json is no record"):
        runs.of(run_folder)
