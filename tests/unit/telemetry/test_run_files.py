import logging
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from spark_app.telemetry import crash_recovery
from spark_app.telemetry.delivery import DELIVERY
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.run_files import SEGMENTS, SegmentedFile, StartedFile, segments
from spark_app.telemetry.run_files_reader import RunFilesReader
from spark_app.vocabulary import names
from tests.unit.telemetry.memory import InMemory, file_logs, file_metrics, file_spans, lines, plain, process

FILES: Final = ("logs.jsonl", "metrics.jsonl", "started.jsonl", "traces.jsonl")
LOG: Final = logging.getLogger("spark_app.execution.run")
SMALL: Final = 20_000


@pytest.fixture
def small(tmp_path: Path) -> Iterator[InMemory]:
    """Telemetry whose files are rotated soon."""
    memory = InMemory(tmp_path, segment_bytes=SMALL)
    yield memory
    memory.telemetry.close()


def test_all_files_are_complete_when_the_run_ends(telemetry: InMemory) -> None:
    """The report reads the folder of a run when the run has ended, before the process ends."""
    with telemetry.run() as run, run.step("write bronze", kind="write"):
        pass
    folder = telemetry.folder / "run-1"
    assert {path.name for path in folder.iterdir()} - {DELIVERY} == set(FILES)
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


def test_metrics_of_the_file_are_deltas_from_zero(telemetry: InMemory) -> None:
    """The file has deltas: each line counts from the previous one, and the first has the zeros."""
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


def test_the_start_of_a_span_is_written_at_once(telemetry: InMemory) -> None:
    """Run and step are in `started.jsonl`, without an end, while they are open."""
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


def test_a_kill_leaves_complete_lines(tmp_path: Path) -> None:
    """SIGKILL in a step: the ended step is complete, and the starts of the run and of the open step are there."""
    killed = process(
        """
with telemetry.run(identity) as run:
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
    """A file cannot grow: the run succeeds, whole lines stay, and each file is one error."""
    full = process(
        """
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
with telemetry.run(identity) as run:
    for number in range(20):
        with run.step(f"step {number}", kind="read"):
            pass
telemetry.close()
print(*telemetry.errors, sep="\\n")
sys.exit(7)
""",
        tmp_path,
    )
    assert (full.returncode, full.stderr) == (7, "")
    errors = full.stdout.splitlines()
    assert f"cannot write {tmp_path / 'started.jsonl'}: File too large; the run continues without this file" in errors
    assert len(errors) == len(set(errors)) <= len(FILES)
    for name in FILES:
        content = (tmp_path / name).read_text()
        assert content == "" or content.endswith("}\n")
        lines(tmp_path / name)


def test_a_folder_that_cannot_be_written_does_not_change_the_run(telemetry: InMemory) -> None:
    """The folder is deleted first: nothing is raised, everything is sent, and each file is one error."""
    run = telemetry.run()
    (telemetry.folder / "run-1").rmdir()
    with run, run.step("write bronze", kind="write"):
        pass
    assert set(telemetry.spans) == {"run etl.daily_sales", "step write bronze"}
    assert len(telemetry.telemetry.errors) == len(FILES)
    assert all(error.startswith("cannot write ") for error in telemetry.telemetry.errors)


def test_telemetry_errors_are_in_the_log_of_the_run(telemetry: InMemory) -> None:
    """One file cannot be opened: the log of the run says so."""
    run = telemetry.run()
    (telemetry.folder / "run-1" / "metrics.jsonl").mkdir()
    with run:
        pass
    (record,) = file_logs(telemetry.folder / "run-1" / "logs.jsonl")
    assert record["body"]["stringValue"].startswith("telemetry: cannot write ")
    assert record["severityText"] == "WARN"


def test_late_telemetry_errors_are_in_the_log_of_the_run(telemetry: InMemory) -> None:
    """An endpoint usually fails at the end of the process, when the files of the run are closed."""
    with telemetry.run():
        pass
    telemetry.telemetry._errors.add("the endpoint is gone")
    telemetry.telemetry.close()
    (record,) = file_logs(telemetry.folder / "run-1" / "logs.jsonl")
    assert record["body"]["stringValue"] == "telemetry: the endpoint is gone"


def test_lines_are_appended(tmp_path: Path) -> None:
    """Lines are appended to the file; a second close does nothing."""
    path, errors = tmp_path / "x.jsonl", TelemetryErrors()
    path.write_text("0\n")
    file = SegmentedFile(path, errors=errors, limit=100)
    file.write("é\n")
    file.close()
    file.close()
    assert path.read_text(encoding="utf-8") == "0\né\n"
    assert list(errors) == []


@pytest.mark.parametrize("value", ["true", " TRUE "])
def test_nothing_is_written_when_opentelemetry_is_disabled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """OTEL_SDK_DISABLED: no file, no id, and the run works."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", value)
    memory = InMemory(tmp_path, variables={"OTEL_SDK_DISABLED": value})
    with memory.run() as run, run.step("write bronze", kind="write") as step:
        step.count(rows_written=1)
        assert (step.traceparent, step.trace_id, step.span_id) == (None, None, None)
    assert list((tmp_path / "run-1").iterdir()) == []
    assert (memory.spans, memory.metrics, memory.logs, memory.telemetry.errors) == ({}, [], [], [])


def test_each_file_is_rotated_and_bounded(small: InMemory) -> None:
    """The newest segments are kept; the run's log says once for each file that its oldest lines were deleted."""
    with small.run() as run:
        for number in range(200):
            with run.step(f"step {number}", kind="read"):
                LOG.warning("in step %d", number)
            run.measure(names.READ, number)
            run.export_metrics()
    folder = small.folder / "run-1"
    for name in FILES:
        kept = segments(folder, name)
        assert [path.name for path in kept][-1] == name
        assert sum(path.stat().st_size for path in kept) <= SEGMENTS * SMALL
        assert len(kept) == (1 if name == "started.jsonl" else SEGMENTS)
    assert not list(folder.glob("*.part"))
    assert sorted(small.telemetry.errors) == [
        f"the oldest lines of {folder / name} were deleted: it keeps 4 segments of 19.5 KiB"
        for name in ("logs.jsonl", "metrics.jsonl", "traces.jsonl")
    ]
    reader = RunFilesReader(folder)
    steps, messages = [step.name for step in reader.steps()], [line.message for line in reader.logs()]
    assert steps[0] == "run etl.daily_sales"
    assert steps[1:] == [f"step step {number}" for number in range(200)][1 - len(steps) :]
    assert set(small.telemetry.errors) == {text.removeprefix("telemetry: ") for text in messages[-3:]}
    assert messages[:-3] == [f"in step {number}" for number in range(200)][3 - len(messages) :]
    assert reader.skipped == 0


def test_a_run_within_the_bound_keeps_everything(small: InMemory) -> None:
    """Several segments are read as one file, without an error."""
    with small.run() as run:
        for number in range(30):
            with run.step(f"step {number}", kind="read"):
                pass
    folder = small.folder / "run-1"
    assert 1 < len(segments(folder, "traces.jsonl")) < SEGMENTS
    assert len(RunFilesReader(folder).steps()) == 31
    assert sorted(small.telemetry.errors) == []


def test_open_spans_are_known_after_any_rotation(small: InMemory, tmp_path: Path) -> None:
    """At each moment of a long run, its folder says of every span whether it is open: a copy is what a kill leaves.

    The start of a span that is open may be older than every segment; the end of one that ended may be deleted.
    """
    with small.run() as run, run.step("long", kind="read"):
        for number in range(100):
            with suppress(ValueError), run.step(f"step {number}", kind="read"):
                if number % 7 == 0:
                    left = tmp_path / f"left-{number}"
                    shutil.copytree(small.folder / "run-1", left)
                    killed = crash_recovery.end(left, lambda *_: True, errors=TelemetryErrors())
                    assert killed is not None
                    open_spans = ["run etl.daily_sales", "step long", f"step step {number}"]
                    assert [span.name for span in killed.spans] == open_spans
                    assert crash_recovery.killed_run(left) is None
                raise ValueError("x" * 4096)  # the end of a span is much larger than its start
    assert crash_recovery.killed_run(small.folder / "run-1") is None


def test_many_open_spans_do_not_rewrite_their_file_each_time(tmp_path: Path) -> None:
    """Open spans stay in the file: it grows, and is rewritten each time it has doubled."""
    errors = TelemetryErrors()
    file = StartedFile(tmp_path / "started.jsonl", errors=errors, limit=1000)
    inodes = []
    for number in range(1000):
        file.start(number, f"{number:099}\n")
        inodes.append((tmp_path / "started.jsonl").stat().st_ino)
    assert 2 <= sum(before != after for before, after in pairwise(inodes)) <= 10
    assert {int(line) for line in (tmp_path / "started.jsonl").read_text().splitlines()} == set(range(1000))
    for number in range(999):
        file.end(number)
    file.compact()
    assert (tmp_path / "started.jsonl").read_text() == f"{999:099}\n"
    assert list(errors) == []
