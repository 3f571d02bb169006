import re
import signal
from pathlib import Path
from typing import Final

import pytest

from app.telemetry.files import LineFile
from app.telemetry.problems import Problems
from tests.unit.telemetry.memory import InMemory, file_logs, file_metrics, file_spans, lines, plain, process

FILES: Final = ("logs.jsonl", "metrics.jsonl", "started.jsonl", "traces.jsonl")


def test_all_four_files_are_complete_when_the_run_ends(telemetry: InMemory) -> None:
    """The report reads a run's folder as soon as the run has ended, not when the process has."""
    with telemetry.run() as run, run.step("write bronze", kind="write"):
        pass
    folder = telemetry.folder / "run-1"
    assert sorted(path.name for path in folder.iterdir()) == list(FILES)
    assert set(file_spans(folder / "traces.jsonl")) == {"run etl.daily_sales", "step write bronze"}
    assert {"pipeline.runs", "pipeline.run.duration"} < {
        each["name"] for each in file_metrics(folder / "metrics.jsonl")
    }


def test_spans_are_otlp_json(telemetry: InMemory) -> None:
    """Ids are hexadecimal, not base64 as in protobuf's own JSON; times are strings of nanoseconds, kinds numbers."""
    with telemetry.run() as run, run.step("write bronze", kind="write"):
        pass
    for name in ("traces.jsonl", "started.jsonl"):
        spans = file_spans(telemetry.folder / "run-1" / name)
        for span in spans.values():
            assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
            assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
            assert re.fullmatch("[0-9]{19}", span["startTimeUnixNano"])
            assert span["kind"] == 1
        assert spans["step write bronze"]["parentSpanId"] == spans["run etl.daily_sales"]["spanId"]


def test_metrics_of_the_file_add_up_to_the_run(telemetry: InMemory) -> None:
    """The file holds deltas: each line is what happened since the one before, and the first has the zeros."""
    with telemetry.run() as run:
        run.record(rows_read=7)
        run.export_metrics()
        run.record(rows_read=5)
    points = [
        (int(point["asInt"]), each["sum"]["aggregationTemporality"])
        for each in file_metrics(telemetry.folder / "run-1" / "metrics.jsonl")
        if each["name"] == "pipeline.rows.read"
        for point in each["sum"]["dataPoints"]
    ]
    assert points == [(0, 1), (7, 1), (5, 1)]


def test_a_start_is_noted_before_anything_else_happens(telemetry: InMemory) -> None:
    """Run and step are in the file, without an end, while they last; their notes can be completed later."""
    folder = telemetry.folder / "run-1"
    with telemetry.run() as run:
        assert list(file_spans(folder / "started.jsonl")) == ["run etl.daily_sales"]
        with run.step("write bronze", kind="write", table="bronze"):
            started = file_spans(folder / "started.jsonl")
    assert list(started) == ["run etl.daily_sales", "step write bronze"]
    for name, ended in file_spans(folder / "traces.jsonl").items():
        start = started[name]
        assert "endTimeUnixNano" not in start
        for key in ("traceId", "spanId", "name", "kind", "startTimeUnixNano"):
            assert start[key] == ended[key]
        assert plain(start["attributes"]).items() <= plain(ended["attributes"]).items()


def test_notes_survive_a_kill(tmp_path: Path) -> None:
    """SIGKILL in a step: the ended step is whole, and run and running step are known by their starts."""
    killed = process(
        """
with telemetry.run(facts) as run:
    with run.step("read transactions", kind="read"):
        pass
    with run.step("write bronze", kind="write"):
        os.kill(os.getpid(), signal.SIGKILL)
""",
        tmp_path,
    )
    assert killed.returncode == -signal.SIGKILL
    assert list(file_spans(tmp_path / "traces.jsonl")) == ["step read transactions"]
    started = file_spans(tmp_path / "started.jsonl")
    assert list(started) == ["run etl.daily_sales", "step read transactions", "step write bronze"]
    assert started["step write bronze"]["parentSpanId"] == started["run etl.daily_sales"]["spanId"]


def test_a_full_disk_does_not_change_the_run(tmp_path: Path) -> None:
    """A file cannot grow beyond some size: the run ends as ever, whole lines stay, and each file is told once."""
    full = process(
        """
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
with telemetry.run(facts) as run:
    for number in range(20):
        with run.step(f"step {number}", kind="read"):
            pass
telemetry.close()
print(*telemetry.problems, sep="\\n")
sys.exit(7)
""",
        tmp_path,
    )
    assert (full.returncode, full.stderr) == (7, "")
    told = full.stdout.splitlines()
    assert f"cannot write {tmp_path / 'started.jsonl'}: File too large; the run goes on without it" in told
    assert len(told) == len(set(told)) <= len(FILES)
    for name in FILES:
        content = (tmp_path / name).read_text()
        assert content == "" or content.endswith("}\n")
        lines(tmp_path / name)


def test_a_folder_that_cannot_be_written_does_not_change_the_run(telemetry: InMemory) -> None:
    """The folder vanishes before the run starts: nothing is raised, all is sent, and each file is told once."""
    run = telemetry.run()
    (telemetry.folder / "run-1").rmdir()
    with run, run.step("write bronze", kind="write"):
        pass
    assert set(telemetry.spans) == {"run etl.daily_sales", "step write bronze"}
    assert len(telemetry.telemetry.problems) == len(FILES)
    assert all(problem.startswith("cannot write ") for problem in telemetry.telemetry.problems)


def test_what_went_wrong_is_in_the_log_of_the_run(telemetry: InMemory) -> None:
    """One file cannot be opened: the run's own log says so."""
    run = telemetry.run()
    (telemetry.folder / "run-1" / "metrics.jsonl").mkdir()
    with run:
        pass
    (record,) = file_logs(telemetry.folder / "run-1" / "logs.jsonl")
    assert record["body"]["stringValue"].startswith("telemetry: cannot write ")
    assert record["severityText"] == "WARN"


def test_what_went_wrong_after_the_run_is_in_its_log_too(telemetry: InMemory) -> None:
    """An endpoint usually fails at the very end, when the run's files are closed already."""
    with telemetry.run():
        pass
    telemetry.telemetry._problems.tell("the endpoint is gone")
    telemetry.telemetry.close()
    (record,) = file_logs(telemetry.folder / "run-1" / "logs.jsonl")
    assert record["body"]["stringValue"] == "telemetry: the endpoint is gone"


def test_a_line_is_whole_or_not_there(tmp_path: Path) -> None:
    """Lines are appended to what is there; after closing, nothing is written and nothing is raised."""
    path, problems = tmp_path / "x.jsonl", Problems()
    path.write_text("0\n")
    file = LineFile(path, problems=problems)
    file.write("é\n")
    file.close()
    file.close()
    assert path.read_text(encoding="utf-8") == "0\né\n"
    assert list(problems) == []


@pytest.mark.parametrize("value", ["true", " TRUE "])
def test_nothing_is_written_when_opentelemetry_is_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """OTEL_SDK_DISABLED means off: no file, no id, and the run works as ever."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", value)
    memory = InMemory(tmp_path, variables={"OTEL_SDK_DISABLED": value})
    with memory.run() as run, run.step("write bronze", kind="write") as step:
        step.count(rows_written=1)
        assert (step.traceparent, step.trace_id, step.span_id) == (None, None, None)
    assert list((tmp_path / "run-1").iterdir()) == []
    assert (memory.spans, memory.metrics, memory.logs, memory.telemetry.problems) == ({}, [], [], [])
