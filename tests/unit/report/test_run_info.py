from pathlib import Path

import pytest

from spark_app.errors import InputError
from spark_app.report import run_info
from spark_app.report.scope import scope
from spark_app.report.sections.headline import unread
from spark_app.runs.run_record import RECORD
from spark_app.telemetry.run_files import LOGS
from tests.unit.eventlog import log
from tests.unit.report.conftest import TRACE, Read, record_of


def test_a_killed_run_without_a_record_has_its_steps(run_folder: Path) -> None:
    """Steps that only started, too; a torn line is skipped."""
    run = run_info.read(run_folder)
    assert (run.record, run.trace_id, run.ended) == (None, TRACE, None)
    assert [(step.name, step.ended) for step in run.steps] == [("run etl.x", None), ("step write t", 3000)]


def test_unreadable_lines_of_a_run_are_counted(run_folder: Path, reading: Read) -> None:
    """A torn line, and one that is not UTF-8; the lines before them are read."""
    with (run_folder / LOGS).open("ab") as file:
        file.write(b"\xff\xfe\xfd\n")
    run = run_info.read(run_folder)
    assert (run.unread, len(run.steps), len(run.warnings)) == (2, 2, 2)
    application = reading([log.started(), log.ended()])
    sentences = unread(application, scope(application.app, run))
    assert sentences == ["Skipped 2 unreadable lines in the files of the run."]


def test_a_running_run_has_no_end(run_folder: Path) -> None:
    """Though its record has a duration of 0 s."""
    record_of(run_folder, outcome="running", seconds=0)
    assert (run_info.read(run_folder).ended, run_info.read(run_folder).is_running) == (None, True)


def test_warnings_are_those_of_the_run_and_of_spark_in_its_trace(run_folder: Path, tmp_path: Path) -> None:
    """Neither lower severities nor lines of another trace are among them; those of its micro-batches are."""
    spark = tmp_path / "spark.jsonl"
    lines = '{"ts":"1970-01-01T00:00:02Z","level":"%s","msg":"%s","context":{"mdc.trace_id":"%s"},"logger":"l"}\n'
    logged = [("WARN", "ours", TRACE), ("INFO", "quiet", TRACE), ("ERROR", "another", "b" * 32)]
    of_batch = lines.replace('"%s"}', f'"%s","mdc.step_trace_id":"{TRACE}"}}') % ("WARN", "of a micro-batch", "c" * 32)
    spark.write_text("no JSON\n" + of_batch + "".join(lines % each for each in logged))
    record_of(run_folder, spark_log=str(spark))
    warnings = [line.message for line in run_info.read(run_folder).warnings]
    assert warnings == ["of a micro-batch", "ours", "rows came late", "rows came late"]


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    """The message names the files that are missing."""
    with pytest.raises(InputError, match=r"neither run\.json nor started\.jsonl"):
        run_info.read(tmp_path)


def test_a_broken_record_is_refused(run_folder: Path) -> None:
    """The message names the file."""
    (run_folder / RECORD).write_text("{")
    with pytest.raises(InputError, match=r"run\.json is not a run record"):
        run_info.read(run_folder)
