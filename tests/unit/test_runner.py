"""What a command says that it was asked to do, and what is told of a run that cannot begin its work."""

import datetime
import fcntl
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app import records, runner
from app.errors import ConfigError, MachineError
from app.runner import Invocation, workload
from app.settings import config_folder, load_settings
from app.telemetry.exceptions import MESSAGE_LENGTH
from tests.polling import poll_until
from tests.unit.telemetry.memory import InMemory, file_logs, file_spans
from tests.unit.watching import Watching

PIPELINE = "etl.daily_sales"
DATE = datetime.date(2024, 1, 1)


def invocation(home: Path, telemetry: InMemory, run: Any, *, watching: Watching | None = None) -> Invocation:
    """One without Spark, of a pipeline that does what is given."""
    settings = load_settings().model_copy(update={"home": home, "warehouse": str(home / "warehouse")})
    unused: Any = None
    return Invocation(
        "0a1b2c3d4e5f", settings, unused, telemetry.telemetry, watching or Watching(), home / "log", False,
        "app-1", None, {PIPELINE: (SimpleNamespace(run=run), SimpleNamespace(schedule=None))},
    )  # fmt: skip


def test_what_takes_another_time_is_another_workload() -> None:
    """A range, and rows from bronze; which days they are of makes no difference, and is not said."""
    asked = [workload(days, is_replay=replay) for days in (1, 2) for replay in (False, True)]
    assert asked == [
        "etl.customers + etl.daily_sales, 1 day",
        "etl.customers + etl.daily_sales, 1 day, replay",
        "etl.customers + etl.daily_sales, 2 days",
        "etl.customers + etl.daily_sales, 2 days, replay",
    ]


@pytest.mark.parametrize(
    ("file", "above", "wrong", "told"),
    [
        ("etl/customers.yml", "checks", "colour: red", "unknown key 'colour'; allowed are checks, "),
        ("etl/daily_sales.yml", "checks", "colour: red", "unknown key 'colour'; allowed are checks, "),
        ("etl/customers.yml", "checks", "  colour: 0", "limits: unknown promise 'colour'; allowed are .*, malformed, "),
        (
            "etl/daily_sales.yml",
            "checks",
            "  colour: 0",
            "limits: unknown promise 'colour'; allowed are .*, outliers, ",
        ),
        ("diagnoses.yml", "cost_ms", "colour: red", "unknown key 'colour'; allowed are .*cost_ms, "),
    ],
)
def test_all_configuration_is_read_before_anything_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, above: str, wrong: str, told: str
) -> None:
    """A wrong key is told even where there is no Java to start, in one line with its file, and nothing is made."""
    config = Path(shutil.copytree(config_folder(), tmp_path / "config"))
    text = (config / file).read_text(encoding="utf-8")
    (config / file).write_text(text.replace(f"\n{above}", f"\n{wrong}\n{above}", 1), encoding="utf-8")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path / "home"))
    with pytest.raises(ConfigError, match=f"^{config / file}: {told}[^{{]*$"):
        runner.run_etl(load_settings(config), [DATE], watcher=Watching())
    assert not (tmp_path / "home").exists()


def test_a_run_that_fails_before_its_work_is_told(tmp_path: Path) -> None:
    """Where the warehouse cannot be made, say: it counts as failed, has a trace and a log, and is in the results."""
    telemetry = InMemory(tmp_path)
    (tmp_path / "warehouse").write_text("a file where a folder should be", encoding="utf-8")
    made = invocation(tmp_path, telemetry, pytest.fail)
    with pytest.raises(MachineError, match="warehouse"):
        runner._run(made, PIPELINE, DATE)
    (result,) = made.results
    assert (result.outcome, result.trace_id is None) == ("failed", False)
    assert telemetry.values("pipeline.runs")[PIPELINE, "failed"] == 1
    assert (telemetry.spans[f"run {PIPELINE}"].attributes or {})["pipeline.run.outcome"] == "failed"
    (line,) = file_logs(result.folder / "logs.jsonl")
    assert "run ended by MachineError: cannot make folder" in line["body"]["stringValue"]


def test_waiting_for_another_run_is_a_part_of_the_run(tmp_path: Path) -> None:
    """Its span has begun, its record is there, and its log says what it waits for; so does whoever is told."""
    telemetry, worked = InMemory(tmp_path), threading.Event()
    watching = Watching()
    made = invocation(tmp_path, telemetry, lambda *_: worked.set(), watching=watching)
    locks = tmp_path / "warehouse" / "_locks"
    locks.mkdir(parents=True)
    with (locks / f"{PIPELINE}-{DATE}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = threading.Thread(target=runner._run, args=(made, PIPELINE, DATE))
        waiting.start()
        poll_until(lambda: bool(watching.notes), "a note that it waits")
        (folder,) = made.settings.runs_path.iterdir()
        assert records.read(folder).outcome == "running"
        assert list(file_spans(folder / "started.jsonl")) == [f"run {PIPELINE}"]
        assert not worked.is_set()
    waiting.join()
    assert [result.outcome for result in made.results] == ["succeeded"]
    said = f"another run of {PIPELINE}-{DATE} is at work: waiting for it to end"
    assert watching.notes == [said]
    assert [line["body"]["stringValue"] for line in file_logs(folder / "logs.jsonl")] == [said, "run succeeded"]


def test_a_long_message_is_cut_in_log_and_record(tmp_path: Path) -> None:
    """Spark's hold whole plans and stacks of Java; how long it was is said."""

    def fail(*_: object) -> None:
        raise ValueError("x" * 100_000)

    made = invocation(tmp_path, InMemory(tmp_path), fail)
    with pytest.raises(ValueError, match="xxx"):
        runner._run(made, PIPELINE, DATE)
    told = f"ValueError: {'x' * MESSAGE_LENGTH} ... (100,000 characters)"
    assert made.results[0].error == told
    (line,) = file_logs(made.results[0].folder / "logs.jsonl")
    assert line["body"]["stringValue"] == f"run ended by {told}"
