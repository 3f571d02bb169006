import json
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from opentelemetry.trace import StatusCode

from app import records
from app.errors import InputError
from app.figures import FRESHNESS, Figure
from app.records import RECORD, RunRecord
from app.telemetry import killed as kills
from app.telemetry.outlet import outlet
from app.telemetry.problems import Problems
from tests.receivers import receiver
from tests.unit.run_records import run_record
from tests.unit.telemetry.memory import InMemory, file_spans, lines, process


def begun(folder: Path) -> RunRecord:
    """The record of a run that has just begun."""
    return run_record(folder, outcome="running", seconds=0.0)


def killed(runs: Path) -> Path:
    """The folder of a run whose process was killed in its second step."""
    folder = runs / "r-1"
    folder.mkdir()
    records.write(begun(folder), note=pytest.fail)
    died = process(
        """
from app import records
with records.at_work(facts.folder, note=print), telemetry.run(facts) as run:
    with run.step("read", kind="read"):
        pass
    with run.step("publish", kind="publish"):
        os.kill(os.getpid(), signal.SIGKILL)
""",
        folder,
    )
    assert died.returncode == -signal.SIGKILL
    return folder


def test_a_record_reads_as_it_was_written(tmp_path: Path) -> None:
    """Whatever it holds."""
    written = run_record(
        tmp_path, rows_read=7, figures=[Figure(FRESHNESS, 9.0, 8.0)], nulls={"amount": 2}, facts={"mean": 1.5}
    )
    records.write(written, note=pytest.fail)
    assert records.read(tmp_path) == written


def test_what_is_no_record_is_told_by_its_path(tmp_path: Path) -> None:
    """None at all, and one that is torn."""
    with pytest.raises(InputError, match="no record of a run"):
        records.read(tmp_path)
    (tmp_path / RECORD).write_text('{"run_id":', encoding="utf-8")
    with pytest.raises(InputError, match=r"run\.json is no record"):
        records.read(tmp_path)


def test_a_record_of_an_older_version_is_read(tmp_path: Path) -> None:
    """What it does not tell is not known; what this version does not know is left out."""
    told = {"run_id": "r-1", "pipeline": "etl.x", "date": "2024-01-01", "outcome": "succeeded", "seconds": 1, "then": 0}
    told |= {"started_at": "2024-01-02T00:00:00Z", "figures": [{"promise": "a", "value": 0.1, "limit": None}]}
    (tmp_path / RECORD).write_text(json.dumps(told), encoding="utf-8")
    record = records.read(tmp_path)
    assert (record.rows_read, record.event_log, record.application_id, record.tables) == (None, None, None, {})
    assert record.figures == [Figure("a", 0.1, None)]


def test_a_record_is_of_the_folder_that_it_lies_in(tmp_path: Path) -> None:
    """A folder that was moved, or is mounted elsewhere, is completed where it is."""
    record = run_record(tmp_path / "there")
    records.write(record, note=pytest.fail)
    record.folder.rename(tmp_path / "here")
    assert records.read(tmp_path / "here").folder == tmp_path / "here"


def test_a_run_at_work_is_left_alone(tmp_path: Path) -> None:
    """Its process lives; when it has ended there is nothing to complete."""
    folder = tmp_path / "r-1"
    folder.mkdir()
    records.write(begun(folder), note=pytest.fail)
    with records.at_work(folder, note=pytest.fail):
        script = "import sys; from pathlib import Path; from app import records\n"
        script += "print(records.complete(Path(sys.argv[1]), lambda folder: 1 / 0, note=print))"
        asked = [sys.executable, "-c", script, str(tmp_path)]
        assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "[]\n"
    assert records.complete(tmp_path, lambda _: pytest.fail("nothing is left open"), note=pytest.fail) == []


def test_a_killed_run_is_completed_once(tmp_path: Path) -> None:
    """Its spans end at its last sign of life, marked killed; it counts as killed; the record says so; then no more.

    A step that had just ended is told, too, as it was: it may not have been sent.
    """
    folder, telemetry, told = killed(tmp_path), InMemory(tmp_path), list[str]()
    completed = records.complete(tmp_path, telemetry.telemetry.end_killed, note=told.append)
    assert [(each.run_id, each.outcome) for each in completed] == [("r-1", "killed")]
    assert records.read(folder).outcome == "killed"
    assert len(told) == 1
    assert records.complete(tmp_path, telemetry.telemetry.end_killed, note=told.append) == []
    run, step = telemetry.spans["run etl.daily_sales"], telemetry.spans["step publish"]
    read = telemetry.spans["step read"]
    assert len(telemetry.spans) == 3
    assert (read.status.status_code, (read.attributes or {})["pipeline.step.name"]) == (StatusCode.UNSET, "read")
    assert read.end_time is not None
    assert read.end_time < (step.end_time or 0)
    assert run.context is not None
    assert step.parent is not None
    assert step.parent.span_id == run.context.span_id
    assert [span.status.description for span in (run, step)] == ["killed", "killed"]
    assert (run.attributes or {})["pipeline.run.outcome"] == "killed"
    assert telemetry.values("pipeline.runs") == {("etl.daily_sales", "killed"): 1}
    assert set(file_spans(folder / "traces.jsonl")) == {"run etl.daily_sales", "step read", "step publish"}
    assert len(lines(folder / "traces.jsonl")) == 3


def test_a_run_that_told_nothing_is_completed_too(tmp_path: Path) -> None:
    """Where OpenTelemetry is off there are no spans to end, and the record must not say for ever that it runs.

    One that had told how it ended keeps that.
    """
    for number, outcome in enumerate(("running", "failed")):
        folder = tmp_path / f"r-{number}"
        records.write(run_record(folder, outcome=outcome), note=pytest.fail)
        (folder / "running").touch()
    completed = records.complete(tmp_path, lambda _: None, note=lambda _: None)
    assert [(each.run_id, each.outcome) for each in completed] == [("r-0", "killed")]
    assert [records.read(tmp_path / name).outcome for name in ("r-0", "r-1")] == ["killed", "failed"]
    assert list(tmp_path.glob("*/running")) == []


def test_a_killed_run_that_was_not_to_be_sent_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sampling is decided when a run starts; that it was killed is counted all the same, and its files have its end."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    folder = killed(tmp_path)
    monkeypatch.delenv("OTEL_TRACES_SAMPLER")
    telemetry = InMemory(tmp_path)
    records.complete(tmp_path, telemetry.telemetry.end_killed, note=lambda _: None)
    assert telemetry.spans == {}
    assert telemetry.values("pipeline.runs") == {("etl.daily_sales", "killed"): 1}
    assert len(lines(folder / "traces.jsonl")) == 3


def test_a_bridge_sends_no_spans_of_such_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a request without any."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    killed(tmp_path)
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.http_endpoint)
        way = outlet(problems=Problems())
        tell = partial(kills.end, send=way.send, problems=Problems())
        assert [each.run_id for each in records.complete(tmp_path, tell, note=lambda _: None)] == ["r-1"]
        way.close()
    assert receiving.spans == []
    assert {metric.name for metric in receiving.metrics} == {"pipeline.runs", "pipeline.run.last_failure.timestamp"}
    assert len(receiving.headers) == 1


def test_an_end_that_is_not_accepted_is_told_later(tmp_path: Path) -> None:
    """Until then all is as before, and it is said why."""
    folder, told, problems = killed(tmp_path), list[str](), Problems()

    def completed(*, is_accepted: bool) -> list[RunRecord]:
        tell = partial(kills.end, send=lambda *_: is_accepted, problems=problems)
        return records.complete(tmp_path, tell, note=told.append)

    assert completed(is_accepted=False) == []
    assert records.read(folder).outcome == "running"
    assert told == ["r-1 cannot be completed: the endpoint does not take its end"]
    assert [each.run_id for each in completed(is_accepted=True)] == ["r-1"]
    assert records.read(folder).outcome == "killed"


def test_a_folder_without_access_keeps_no_other_from_being_completed(tmp_path: Path) -> None:
    """It is noted; those after it are looked at."""
    folder, told = killed(tmp_path), list[str]()
    (tmp_path / "r-0" / "running").mkdir(parents=True)
    tell = partial(kills.end, send=lambda *_: True, problems=Problems())
    assert [each.run_id for each in records.complete(tmp_path, tell, note=told.append)] == [folder.name]
    assert told[0] == "r-0 cannot be completed: Is a directory"


def test_without_a_folder_of_runs_nothing_was_killed(tmp_path: Path) -> None:
    """One that is there and cannot be read is another matter."""
    assert records.complete(tmp_path / "runs", lambda _: None, note=pytest.fail) == []
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        records.complete(tmp_path / "file", lambda _: None, note=pytest.fail)


def test_a_run_is_never_taken_for_killed_while_it_begins_or_ends(tmp_path: Path) -> None:
    """Whoever looks at any moment finds it held, or not there."""
    looked, is_over = threading.Event(), threading.Event()

    def look() -> None:
        while not is_over.is_set():
            records.complete(tmp_path, lambda _: looked.set(), note=lambda _: looked.set())

    looking = threading.Thread(target=look)
    looking.start()
    for number in range(200):
        (tmp_path / str(number)).mkdir()
        with records.at_work(tmp_path / str(number), note=pytest.fail):
            pass
        (tmp_path / str(number)).rmdir()
    is_over.set()
    looking.join()
    assert not looked.is_set()


def test_a_run_that_cannot_be_held_goes_on(tmp_path: Path) -> None:
    """Where the file system keeps no locks, say: only what would be told of a kill is lost, and that is noted."""
    told = list[str]()
    (tmp_path / f"{records.AT_WORK}.part").mkdir()
    with records.at_work(tmp_path, note=told.append):
        told.append("at work")
    assert told == [
        f"nobody would know if this run were killed: cannot hold {tmp_path}/running: Is a directory",
        "at work",
    ]
