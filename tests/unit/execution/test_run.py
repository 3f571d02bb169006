"""What a command says that it was asked to do, and what is known of a run that cannot begin its work."""

import datetime
import fcntl
import shutil
import threading
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import DateType, StructField, StructType

from spark_app.errors import ConfigError, MachineError
from spark_app.execution import run
from spark_app.execution.application import Application
from spark_app.execution.run import Job, run_batch, workload
from spark_app.runs import run_record
from spark_app.settings import config_folder, load_settings
from spark_app.telemetry.exceptions import MAX_MESSAGE
from spark_app.warehouse.periods import Period
from spark_app.warehouse.tables import Table, Warehouse
from tests.declared import pipeline
from tests.polling import poll_until
from tests.unit.telemetry.memory import InMemory, file_logs, file_spans
from tests.unit.watching import Watching

PIPELINE = "etl.daily_sales"
DATE = datetime.date(2024, 1, 1)


def application(home: Path, telemetry: InMemory, *, watching: Watching | None = None) -> Application:
    """An application without Spark."""
    settings = load_settings().model_copy(update={"home": home})
    unused: Any = None
    warehouse = Warehouse(unused, str(home / "warehouse"), [])
    known = (telemetry.telemetry, watching or Watching(), home / "log", "app-1", None)
    return Application("0a1b2c3d4e5f", "spark-app etl", settings, unused, warehouse, *known)


def job(run: Any, name: str = PIPELINE) -> Job:
    """A pipeline that does what is given."""
    return Job(name, pipeline(run=run), SimpleNamespace(schedule=None))


def lines_of(folder: Path) -> list[str]:
    """The log of a run, without errors of telemetry: threads of earlier tests may still report a dead endpoint."""
    lines = [line["body"]["stringValue"] for line in file_logs(folder / "logs.jsonl")]
    return [line for line in lines if not line.startswith("telemetry: ")]


def test_runs_of_other_pipelines_or_another_number_of_days_are_another_workload() -> None:
    """So is a replay; which days they are makes no difference."""
    jobs = [job(None, "etl.customers"), job(None)]
    asked = [workload(jobs, days=days, is_replay=replay) for days in (1, 2) for replay in (False, True)]
    assert asked == [
        "etl.customers + etl.daily_sales, 1 day",
        "etl.customers + etl.daily_sales, 1 day, replay",
        "etl.customers + etl.daily_sales, 2 days",
        "etl.customers + etl.daily_sales, 2 days, replay",
    ]
    assert workload(jobs[1:], days=1, is_replay=False) == "etl.daily_sales, 1 day"
    assert workload(jobs[1:], days=31, is_replay=False, only="missing") == "etl.daily_sales, missing of 31 days"


@pytest.fixture
def bills() -> Job:
    """A pipeline of one table of days, which reads another one."""
    days = StructType([StructField("day", DateType())])
    bills = pipeline(run=lambda *_: None, writes=(Table("bills", days, ("day",)),))
    return Job("etl.bills", bills, SimpleNamespace(schedule=None))


@pytest.mark.parametrize(("now", "number"), [("run 2", 1), ("run 1", 0)])
def test_what_follows_a_rerun_is_said_at_its_end(tmp_path: Path, bills: Job, now: str, number: int) -> None:
    """In a note, as a metric of the pipeline that has to run again, and in the record of the last run."""
    telemetry, watching = InMemory(tmp_path), Watching()
    started = application(tmp_path, telemetry, watching=watching)
    usage = job(lambda *_: None, "etl.usage")
    usage.pipeline.writes = (Table("usage", bills.pipeline.writes[0].schema, ("day",)),)
    run_batch(started, usage, DATE)
    started.warehouse.periods.put("usage", DATE, Period(now))
    started.warehouse.periods.put("bills", DATE, Period("run 1", {"usage": "run 1"}))
    run.report_stale(started, [usage, bills])
    line = "1 day of 1 table was made of what has changed since: spark-app etl --stale"
    assert watching.notes == [line] * number
    assert telemetry.values("pipeline.days.stale") == {("etl.usage",): 0, ("etl.bills",): number}
    recorded = run_record.read(started.results[-1].folder).stale
    assert [str(each) for each in recorded] == ["bills of 2024-01-01: usage changed"] * number


def test_days_that_cannot_be_read_end_no_command_and_are_no_zero(tmp_path: Path, bills: Job) -> None:
    """The runs have succeeded."""
    telemetry, watching = InMemory(tmp_path), Watching()
    started = application(tmp_path, telemetry, watching=watching)
    started.warehouse.periods.put("bills", DATE, Period("run 1"))
    (tmp_path / "warehouse" / "_periods" / "bills" / "2024-99-99.json").write_text("{}", encoding="utf-8")
    run.report_stale(started, [bills])
    assert "is unknown: ValueError" in watching.notes[0]
    assert telemetry.values("pipeline.days.stale") == {}


@pytest.mark.parametrize(
    ("file", "above", "wrong", "error"),
    [
        ("etl/customers.yml", "checks", "colour: red", "unknown key 'colour'; allowed are checks, "),
        ("etl/daily_sales.yml", "checks", "colour: red", "unknown key 'colour'; allowed are checks, "),
        (
            "etl/customers.yml",
            "checks",
            "  colour: 0",
            "limits: unknown expectation 'colour'; allowed are .*, malformed, ",
        ),
        (
            "etl/daily_sales.yml",
            "checks",
            "  colour: 0",
            "limits: unknown expectation 'colour'; allowed are .*, outliers, ",
        ),
        (
            "etl/daily_sales.yml",
            "checks",
            "  outlier: 0",
            r"limits: unknown expectation 'outlier'; do you mean outliers\? allowed are .*, outliers, ",
        ),
        ("diagnoses.yml", "cost_ms", "colour: red", "unknown key 'colour'; allowed are .*cost_ms, "),
    ],
)
def test_all_configuration_is_read_before_anything_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, above: str, wrong: str, error: str
) -> None:
    """A wrong key is reported even where there is no Java to start, in one line with its file, and nothing is made."""
    config = Path(shutil.copytree(config_folder(), tmp_path / "config"))
    text = (config / file).read_text(encoding="utf-8")
    (config / file).write_text(text.replace(f"\n{above}", f"\n{wrong}\n{above}", 1), encoding="utf-8")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path / "home"))
    with pytest.raises(ConfigError, match=rf"^{config / file}:\d+: {error}[^{{]*$"):
        run.run_etl(load_settings(config), [DATE], listener=Watching())
    assert not (tmp_path / "home").exists()


def test_a_run_that_fails_before_its_work_is_told(tmp_path: Path) -> None:
    """Where the warehouse cannot be made, say: it counts as failed, has a trace and a log, and is in the results."""
    telemetry = InMemory(tmp_path)
    (tmp_path / "warehouse").write_text("a file where a folder should be", encoding="utf-8")
    started = application(tmp_path, telemetry)
    with pytest.raises(MachineError, match="warehouse"):
        run_batch(started, job(pytest.fail), DATE)
    (result,) = started.results
    assert (result.outcome, result.trace_id is None) == ("failed", False)
    assert telemetry.values("pipeline.runs")[PIPELINE, "failed"] == 1
    assert (telemetry.spans[f"run {PIPELINE}"].attributes or {})["pipeline.run.outcome"] == "failed"
    (line,) = lines_of(result.folder)
    assert line.startswith("run ended by MachineError: cannot create folder")


def test_waiting_for_another_run_is_a_part_of_the_run(tmp_path: Path) -> None:
    """Its span has begun, its record is there, and its log says what it waits for; so does whoever listens."""
    telemetry, worked = InMemory(tmp_path), threading.Event()
    watching = Watching()
    started = application(tmp_path, telemetry, watching=watching)
    locks = tmp_path / "warehouse" / "_locks"
    locks.mkdir(parents=True)
    with (locks / f"{PIPELINE}-{DATE}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = threading.Thread(target=run_batch, args=(started, job(lambda *_: worked.set()), DATE))
        waiting.start()
        poll_until(lambda: bool(watching.notes), "a note that it waits")
        (folder,) = started.settings.runs_path.iterdir()
        assert run_record.read(folder).outcome == "running"
        assert list(file_spans(folder / "started.jsonl")) == [f"run {PIPELINE}"]
        assert not worked.is_set()
    waiting.join()
    assert [result.outcome for result in started.results] == ["succeeded"]
    said = f"another process runs {PIPELINE} {DATE}: waiting for it to end"
    assert watching.notes == [said]
    assert lines_of(folder) == [said, "run succeeded"]


def test_a_long_message_is_cut_in_log_and_record(tmp_path: Path) -> None:
    """Spark's hold whole plans and stacks of Java; how long it was is said."""

    def fail(*_: object) -> None:
        raise ValueError("x" * 100_000)

    started = application(tmp_path, InMemory(tmp_path))
    with pytest.raises(ValueError, match="xxx"):
        run_batch(started, job(fail), DATE)
    error = f"ValueError: {'x' * MAX_MESSAGE} ... (100,000 characters)"
    assert started.results[0].error == error
    assert lines_of(started.results[0].folder) == [f"run ended by {error}"]


def test_the_id_of_a_run_begins_with_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is read once: the id, the folder and the record name the same second."""
    hours = count(1)
    clock = SimpleNamespace(now=lambda zone: datetime.datetime(2024, 1, 1, next(hours), tzinfo=zone))
    monkeypatch.setattr(run, "datetime", SimpleNamespace(datetime=clock, UTC=datetime.UTC))
    started = application(tmp_path, InMemory(tmp_path))
    run_batch(started, job(lambda *_: None), DATE)
    (result,) = started.results
    assert result.run_id.startswith(f"{result.started_at:%Y%m%dT%H%M%SZ}-{PIPELINE}-{DATE}-")


def test_a_run_says_whether_another_lasted_at_the_same_time(tmp_path: Path) -> None:
    """At its end; one that fails and one that follows were alone."""
    started = application(tmp_path, InMemory(tmp_path))

    def fail(*_: object) -> None:
        raise ValueError("no rows")

    def nested(*_: object) -> None:
        run_batch(started, job(lambda *_: None, "etl.customers"), DATE)
        (other,) = (folder for folder in (tmp_path / "runs").iterdir() if PIPELINE in folder.name)
        assert run_record.read(other).is_alone is None

    run_batch(started, job(nested), DATE)
    with pytest.raises(ValueError, match="no rows"):
        run_batch(started, job(fail), DATE)
    run_batch(started, job(lambda *_: None), DATE)
    assert [result.is_alone for result in started.results] == [False, False, True, True]
    assert run_record.read(started.results[-1].folder).is_alone
