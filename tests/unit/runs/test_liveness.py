import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from opentelemetry.trace import StatusCode

from spark_app.runs import liveness, run_record
from spark_app.runs.run_record import RunRecord
from spark_app.telemetry import crash_recovery as kills
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.otlp_client import otlp_client
from tests.receivers import receiver
from tests.unit.run_records import example_record
from tests.unit.telemetry.memory import InMemory, file_spans, lines, process


def begun(folder: Path) -> RunRecord:
    """The record of a run that has just begun."""
    return example_record(folder, outcome="running", seconds=0.0)


def killed(runs: Path) -> Path:
    """The folder of a run whose process was killed in its second step."""
    folder = runs / "r-1"
    folder.mkdir()
    run_record.write(begun(folder), note=pytest.fail)
    died = process(
        """
from spark_app.runs import liveness
with liveness.hold_liveness_lock(identity.folder, note=print), telemetry.run(identity) as run:
    with run.step("read", kind="read"):
        pass
    with run.step("publish", kind="publish"):
        os.kill(os.getpid(), signal.SIGKILL)
""",
        folder,
    )
    assert died.returncode == -signal.SIGKILL
    return folder


def test_a_record_is_of_the_folder_that_it_lies_in(tmp_path: Path) -> None:
    """A folder that was moved, or is mounted elsewhere, is completed where it is."""
    record = example_record(tmp_path / "there")
    run_record.write(record, note=pytest.fail)
    record.folder.rename(tmp_path / "here")
    assert run_record.read(tmp_path / "here").folder == tmp_path / "here"


def test_a_run_at_work_is_left_alone(tmp_path: Path) -> None:
    """Its process lives; when it has ended there is nothing to complete."""
    folder = tmp_path / "r-1"
    folder.mkdir()
    run_record.write(begun(folder), note=pytest.fail)
    with liveness.hold_liveness_lock(folder, note=pytest.fail):
        script = "import sys; from pathlib import Path; from spark_app.runs import liveness\n"
        script += "print(liveness.mark_killed_runs(Path(sys.argv[1]), lambda folder: 1 / 0, note=print))"
        asked = [sys.executable, "-c", script, str(tmp_path)]
        assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "[]\n"
    assert liveness.mark_killed_runs(tmp_path, lambda _: pytest.fail("nothing is left open"), note=pytest.fail) == []


def test_a_killed_run_is_completed_once(tmp_path: Path) -> None:
    """Its spans end at its last sign of life, marked killed; it counts as killed; the record says so; then no more.

    A step that had just ended is notes, too, as it was: it may not have been sent.
    """
    folder, telemetry, notes = killed(tmp_path), InMemory(tmp_path), list[str]()
    completed = liveness.mark_killed_runs(tmp_path, telemetry.telemetry.end_killed, note=notes.append)
    assert [(each.run_id, each.outcome) for each in completed] == [("r-1", "killed")]
    assert run_record.read(folder).outcome == "killed"
    assert len(notes) == 1
    assert liveness.mark_killed_runs(tmp_path, telemetry.telemetry.end_killed, note=notes.append) == []
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

    One that had notes how it ended keeps that.
    """
    for number, outcome in enumerate(("running", "failed")):
        folder = tmp_path / f"r-{number}"
        run_record.write(example_record(folder, outcome=outcome), note=pytest.fail)
        (folder / "running").touch()
    completed = liveness.mark_killed_runs(tmp_path, lambda _: None, note=lambda _: None)
    assert [(each.run_id, each.outcome) for each in completed] == [("r-0", "killed")]
    assert [run_record.read(tmp_path / name).outcome for name in ("r-0", "r-1")] == ["killed", "failed"]
    assert list(tmp_path.glob("*/running")) == []


def test_a_killed_run_that_was_not_to_be_sent_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sampling is decided when a run starts; that it was killed is counted all the same, and its files have its end."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    folder = killed(tmp_path)
    monkeypatch.delenv("OTEL_TRACES_SAMPLER")
    telemetry = InMemory(tmp_path)
    liveness.mark_killed_runs(tmp_path, telemetry.telemetry.end_killed, note=lambda _: None)
    assert telemetry.spans == {}
    assert telemetry.values("pipeline.runs") == {("etl.daily_sales", "killed"): 1}
    assert len(lines(folder / "traces.jsonl")) == 3


def test_a_bridge_sends_no_spans_of_such_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a request without any."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    killed(tmp_path)
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.http_endpoint)
        way = otlp_client(errors=TelemetryErrors())
        end_spans = partial(kills.end, send=way.send, errors=TelemetryErrors())
        assert [each.run_id for each in liveness.mark_killed_runs(tmp_path, end_spans, note=lambda _: None)] == ["r-1"]
        way.close()
    assert receiving.spans == []
    assert {metric.name for metric in receiving.metrics} == {"pipeline.runs", "pipeline.run.last_failure.timestamp"}
    assert len(receiving.headers) == 1


def test_an_end_that_is_not_accepted_is_told_later(tmp_path: Path) -> None:
    """Until then all is as before, and it is said why."""
    folder, notes, problems = killed(tmp_path), list[str](), TelemetryErrors()

    def completed(*, is_accepted: bool) -> list[RunRecord]:
        end_spans = partial(kills.end, send=lambda *_: is_accepted, errors=problems)
        return liveness.mark_killed_runs(tmp_path, end_spans, note=notes.append)

    assert completed(is_accepted=False) == []
    assert run_record.read(folder).outcome == "running"
    assert notes == ["cannot complete the record of r-1: the OTLP endpoint rejected the final spans of the killed run"]
    assert [each.run_id for each in completed(is_accepted=True)] == ["r-1"]
    assert run_record.read(folder).outcome == "killed"


def test_a_folder_without_access_keeps_no_other_from_being_completed(tmp_path: Path) -> None:
    """It is noted; those after it are looked at."""
    folder, notes = killed(tmp_path), list[str]()
    (tmp_path / "r-0" / "running").mkdir(parents=True)
    end_spans = partial(kills.end, send=lambda *_: True, errors=TelemetryErrors())
    assert [each.run_id for each in liveness.mark_killed_runs(tmp_path, end_spans, note=notes.append)] == [folder.name]
    assert notes[0] == "cannot complete the record of r-0: Is a directory"


def test_without_a_folder_of_runs_nothing_was_killed(tmp_path: Path) -> None:
    """One that is there and cannot be read is another matter."""
    assert liveness.mark_killed_runs(tmp_path / "runs", lambda _: None, note=pytest.fail) == []
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        liveness.mark_killed_runs(tmp_path / "file", lambda _: None, note=pytest.fail)


def test_a_run_is_never_taken_for_killed_while_it_begins_or_ends(tmp_path: Path) -> None:
    """Whoever looks at any moment finds it held, or not there."""
    looked, is_over = threading.Event(), threading.Event()

    def look() -> None:
        while not is_over.is_set():
            liveness.mark_killed_runs(tmp_path, lambda _: looked.set(), note=lambda _: looked.set())

    looking = threading.Thread(target=look)
    looking.start()
    for number in range(200):
        (tmp_path / str(number)).mkdir()
        with liveness.hold_liveness_lock(tmp_path / str(number), note=pytest.fail):
            pass
        (tmp_path / str(number)).rmdir()
    is_over.set()
    looking.join()
    assert not looked.is_set()


def test_a_run_that_cannot_be_held_goes_on(tmp_path: Path) -> None:
    """Where the file system keeps no locks, say: only what would be notes of a kill is lost, and that is noted."""
    notes = list[str]()
    (tmp_path / liveness.LIVENESS_LOCK).mkdir()
    with liveness.hold_liveness_lock(tmp_path, note=notes.append):
        notes.append("at work")
    assert notes == [
        f"crash detection is off for this run: cannot lock {tmp_path}/running: Is a directory",
        "at work",
    ]
