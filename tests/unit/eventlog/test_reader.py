"""Logs that every Spark from 3.5 to 4.3 has really written tell the same, in each layout."""

import gzip
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import zstandard

from spark_app.errors import InputError
from spark_app.eventlog import reader
from spark_app.eventlog.comparison.wallclock import wall_clock
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.operators import plan_of
from spark_app.eventlog.model.stream_samples import together
from spark_app.eventlog.parse import events
from spark_app.report.scope import scope
from spark_app.report.sections.headline import headline
from tests.eventlogs import golden, record, record_connect, walking
from tests.eventlogs.record_streams import of_version
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line, task
from tests.unit.eventlog.logs import program, text, write

TREE: Final = (record.HERE / "golden.txt").read_text(encoding="utf-8")
CONDITION: Final = "USER_RAISED_EXCEPTION"
EVERY_LOG: Final = pytest.mark.parametrize(("version", "layout"), golden.LOGS)


@EVERY_LOG
def test_every_log_tells_the_same_tree(version: str, layout: str, tmp_path: Path) -> None:
    """Kinds, names, parents, counts and rows; 3.5 has no name for the condition that a program raises itself."""
    _, found = walking.read(golden.log(version, layout, tmp_path))
    expected = TREE.replace(CONDITION, "java.lang.RuntimeException") if version.startswith("3.5") else TREE
    assert golden.tree(found) == expected


def test_a_log_that_databricks_delivers_tells_the_same_tree(tmp_path: Path) -> None:
    """By the folder of its files, which are read in the order of their times, wherever it lies."""
    folder = golden.delivered("4.2.0", tmp_path)
    read = reader.read(folder)
    assert golden.tree(walking.read(folder)[1]) == TREE
    assert (read.log, read.remarks, read.is_finished) == (folder, [], True)


def test_a_packed_log_tells_the_same_tree(tmp_path: Path) -> None:
    """Of gzip, also of several members, and whatever its name says: a web server may unpack it on the way."""
    plain = golden.log("4.2.0", "plain", tmp_path).read_bytes()
    middle = plain.index(b"\n", len(plain) // 2) - 7
    members = gzip.compress(plain[:middle]) + gzip.compress(plain[middle:])
    for name, content in (
        ("app-1.gz", gzip.compress(plain)),
        ("app-2.gz", members),
        ("app-3.gz", plain),
        ("4", members),
    ):
        (tmp_path / name).write_bytes(content)
        assert golden.tree(walking.read(tmp_path / name)[1]) == TREE
        assert reader.read(tmp_path / name).remarks == []


def test_a_gzip_file_that_is_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    """It is said that the rest is missing."""
    packed = gzip.compress(golden.log("4.2.0", "plain", tmp_path).read_bytes())
    (tmp_path / "eventlog-2024-01-01--10-00.gz").write_bytes(packed[: len(packed) // 2])
    read = reader.read(tmp_path / "eventlog-2024-01-01--10-00.gz")
    assert read.app.jobs
    assert "Skipped the rest of 1 file of the log, which cannot be unpacked" in read.remarks[-1]


@EVERY_LOG
def test_no_span_is_without_its_parent(version: str, layout: str, tmp_path: Path) -> None:
    """0 orphans, no id twice, times and traces of children within those of their parents."""
    walking.assert_is_forest(*walking.read(golden.log(version, layout, tmp_path)))


@EVERY_LOG
def test_every_line_is_read(version: str, layout: str, tmp_path: Path) -> None:
    """Nothing is torn, lost or unreadable, and the log says that it is whole."""
    read = reader.read(golden.log(version, layout, tmp_path))
    assert read.remarks == []
    assert read.is_finished
    assert (read.app.spark_version, read.app.running) == (version, 0)


@EVERY_LOG
def test_a_failure_has_its_message_at_every_level(version: str, layout: str, tmp_path: Path) -> None:
    """What the program raised itself, and what its Python function did: of query, job, stage and task.

    A task that was killed for it says why, but has not failed by itself.
    """
    _, found = walking.read(golden.log(version, layout, tmp_path))
    kinds = {"sql", "job", "stage", "task"}
    for said, type_ in (("this query fails on purpose", None), ("no number", "LookupError")):
        failures = [(span.kind.prefix, span.failure) for span in found if span.failure and said in span.failure.message]
        assert {kind for kind, _ in failures} - {"application"} == kinds
        assert len({failure.type for _, failure in failures} - {"TaskKilled"}) == 1
        assert type_ in (None, failures[0][1].type)


@EVERY_LOG
def test_operators_have_counted_their_rows(version: str, layout: str, tmp_path: Path) -> None:
    """The join of the step gave all rows, its aggregate one for each name."""
    app, _ = walking.read(golden.log(version, layout, tmp_path))
    operators = [operator for _, operator in plan_of(app.queries[0], app.numbers).root.walk()]
    rows = {operator.name: operator.numbers["number of output rows"].value for operator in operators
            if "number of output rows" in operator.numbers}  # fmt: skip
    assert next(value for name, value in rows.items() if name.endswith("Join")) == 2000
    assert rows["HashAggregate"] == 7


@pytest.mark.parametrize("version", record.VERSIONS)
def test_what_an_older_version_does_not_tell_is_absent(version: str, tmp_path: Path) -> None:
    """The exit code of the driver is known from 4.0 on."""
    _, found = walking.read(golden.log(version, "zstd", tmp_path))
    application = next(span for span in found if span.kind.prefix == "application")
    assert ("spark.app.exit_code" in application.attributes) == (version >= "4")


@pytest.mark.parametrize("version", record.VERSIONS)
def test_every_field_that_is_read_is_written(version: str, tmp_path: Path) -> None:
    """A field of another name would be taken for absent; what only a lost executor, a kill or a pod tells is not there.

    Sessions and operations of Spark Connect are in the logs of 4.2 only.
    """
    written = set[str]()
    of_connect = map(record_connect.recorded, record_connect.LOGS)
    for recorded in (golden.log(version, "zstd", tmp_path), of_version(version), *of_connect):
        for line in walking.lines(recorded):
            written |= set(keys(json.loads(line)))
    assert declared() - written <= RARE | NEW.get(version[:3], set())


@pytest.mark.parametrize(
    "fields",
    [
        {"Task Info": {"Finish Time": 2**64 - 1}},
        {"Task Info": {"Launch Time": 2**63}},
        {"Task Info": {"Launch Time": -(2**63) - 1}},
    ],
)
def test_a_time_of_a_task_that_no_spark_wrote_costs_its_line(fields: Line, tmp_path: Path) -> None:
    """When it ran is not known, and each section of a report needs it. The line is counted; others tell the same."""
    broken = task(7, 0)
    for part, values in fields.items():
        broken[part] |= values
    lines = program(3)
    whole = reader.read(write(tmp_path / "whole", lines))
    read = reader.read(write(tmp_path / "broken", [*lines[:4], broken, *lines[4:]]))
    assert (read.unreadable_lines, whole.unreadable_lines) == (1, 0)
    assert (read.app.last, wall_clock(read.app)) == (whole.app.last, wall_clock(whole.app))
    assert read.app.stages[0, 0].totals == whole.app.stages[0, 0].totals


@pytest.mark.parametrize(
    ("metrics", "path"),
    [
        ({"Memory Bytes Spilled": 2**63}, "Memory Bytes Spilled"),
        ({"Executor CPU Time": 2**200}, "Executor CPU Time"),
        ({"JVM GC Time": "soon"}, "JVM GC Time"),
        (
            {"Shuffle Read Metrics": {"Remote Bytes Read": 2**63 - 1, "Local Bytes Read": 1}},
            "Shuffle Read Metrics.Remote Bytes Read",
        ),
    ],
)
def test_a_metric_that_cannot_be_read_costs_that_metric(metrics: Line, path: str, tmp_path: Path) -> None:
    """The task counts, with its other numbers; one remark names the value."""
    lines = program(3)
    lines[3]["Task Metrics"] |= {"Executor Run Time": 90} | metrics
    read = reader.read(write(tmp_path / "app-1", [log_start("4.2.0"), *lines]))
    stage = read.app.stages[0, 0]
    assert (len(stage.durations_ms), stage.totals.run_ms) == (3, 270)
    assert read.remarks == [f"Left out 1 value of the log that cannot be read, and are unknown: Task Metrics.{path}."]


RECORDED: Final = Path(__file__).parents[2] / "eventlogs" / "causes" / "spill-planted.zst"


def recorded_lines() -> list[bytes]:
    """The lines of a recorded log."""
    return (
        zstandard.ZstdDecompressor()
        .decompressobj(read_across_frames=True)
        .decompress(RECORDED.read_bytes())
        .splitlines()
    )


def is_event(line: bytes, name: str) -> bool:
    """Whether a line is an event of a name."""
    return re.match(f'{{"Event":"SparkListener{name}"'.encode(), line) is not None


def spaced(line: bytes) -> bytes:
    """The same JSON with blanks, and with its keys in another order."""
    content = json.loads(line)
    return json.dumps(dict(sorted(content.items(), key=lambda item: item[0] == "Event"))).encode()


DAMAGED: Final[dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]]] = {
    "tasks again, later": (
        lambda lines: [*lines, *[line for line in lines if is_event(line, "TaskEnd")][:5]],
        "Skipped 5 events that the log has more than once.",
    ),
    "all but its start again": (
        lambda lines: [
            *lines,
            *(line for line in lines if not is_event(line, "LogStart") and b"ApplicationStart" not in line),
        ],
        "Skipped [0-9]+ events that the log has more than once.",
    ),
    "no start of a stage": (
        lambda lines: [line for line in lines if not is_event(line, "StageSubmitted")],
        "The log lacks the start of [0-9]+ stages: each is taken to begin with its first task.",
    ),
    "a byte of another encoding": (
        lambda lines: [
            line.replace(b" at ", b" \xe9t ", 1) if is_event(line, "StageCompleted") else line for line in lines
        ],
        "Replaced bytes that are no UTF-8 in [0-9]+ lines of the log.",
    ),
    "JSON with blanks": (lambda lines: [spaced(line) for line in lines], ""),
}


def figures(app: Application) -> list[object]:
    """What a log says of the tasks of each stage, of its jobs and of its queries."""
    stages = [(key, len(each.durations_ms), each.failed, each.totals) for key, each in sorted(app.stages.items())]
    return [stages, sorted(app.jobs), sorted(app.queries), sorted(app.executors), app.started, app.ended]


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_log_has_all_figures_and_one_remark(damage: str, tmp_path: Path) -> None:
    """Of a whole log, but for what the remark says."""
    harm, remark = DAMAGED[damage]
    whole = reader.read(RECORDED)
    file = tmp_path / "app-1"
    file.write_bytes(b"".join(line + b"\n" for line in harm(recorded_lines())))
    read = reader.read(file)
    assert figures(read.app) == figures(whole.app)
    assert [bool(re.fullmatch(remark, each)) for each in read.remarks] == [True] * bool(remark), read.remarks


def test_the_newest_log_is_the_one_that_was_written_last(tmp_path: Path) -> None:
    """By its files: the folder of a rolled log changes only when a file is added to it."""
    for name, changed in (("eventlog_v2_a", 2000), ("eventlog_v2_b", 1000)):
        file = write(tmp_path / name / "events_1_app-1", program())
        os.utime(file, (changed, changed))
        os.utime(file.parent, (3000 - changed, 3000 - changed))
    assert reader.read(tmp_path).log == tmp_path / "eventlog_v2_a"


def test_what_lies_beside_logs_is_no_log(tmp_path: Path) -> None:
    """However new it is; a folder without any log is named, and so is a log that must be unpacked elsewhere."""
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    (tmp_path / "empty").touch()
    os.utime(tmp_path / "notes.txt", (2e9, 2e9))
    with pytest.raises(InputError, match="no event log in"):
        reader.find_log(tmp_path)
    kept = write(tmp_path / "app-1", program())
    assert reader.find_log(tmp_path) == kept
    (tmp_path / "app-2.lz4").touch()
    os.utime(tmp_path / "app-2.lz4", (2e9, 2e9))
    with pytest.raises(InputError, match="compressed with lz4, which spark-app does not read"):
        reader.read(tmp_path)


RARE: Final = {
    "App Attempt ID", "Executor Metrics", "ExecutorMetrics", "Getting Result Time", "Kill Reason", "Loss Reason",
    "Removed Reason", "executorFailures", "executorId", "hostId", "stageAttemptId", "stageId", "taskFailures",
    "spark.observed.callSite", "spark.scheduler.pool", "spark.sparkApp.streaming.trigger",
    "KUBERNETES_NODE_NAME",  # only pods of config/spark/kubernetes-pod.yaml tell it: tests/kubernetes
}  # fmt: skip
NEW: Final = {"3.5": {"ExitCode", "jobGroupId"}}
"""Fields that older versions do not know."""


def keys(value: Any) -> Iterator[str]:
    """All names of fields, at every depth."""
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys(child)
    if isinstance(value, dict):
        yield from value


def declared() -> set[str]:
    """The names of all fields that events of Spark are decoded to."""
    own = {events.Compacted, events.LogRecord, events.Observed}
    kinds = {kind for kind in vars(events).values() if inspect.isclass(kind)} - own
    fields = [msgspec.structs.fields(kind) for kind in kinds if issubclass(kind, msgspec.Struct)]
    return {field.encode_name for kind in fields for field in kind}


def test_names_of_the_machine_are_not_kept() -> None:
    """What is recorded is in the repository for good."""
    for version, layout in golden.LOGS:
        if layout != "plain":
            lines = chain(walking.lines(golden.log(version, layout, Path())), walking.lines(of_version(version)))
            content = b"".join(lines)
            assert [name for name in (b"/tmp/", b"/home/", b"/root/", b"/usr/") if name in content] == []


@pytest.mark.parametrize("version", record.VERSIONS)
def test_every_version_tells_the_same_of_a_stream(version: str) -> None:
    """Batches, rows, state, watermark and what was observed; a file source says no lag."""
    (query,) = reader.read(of_version(version)).app.streams.queries.values()
    total = together(query.history.all)
    assert total is not None
    assert (query.name, query.runs, query.error) == ("counts", 1, None)
    assert (total.rows, total.lag, total.watermark is None, total.skew.stages > 0) == (80, None, False, True)
    assert set(total.phases_ms) == {
        "addBatch",
        "queryPlanning",
        "walCommit",
        "commitOffsets",
        "latestOffset",
        "getBatch",
    }
    assert {name: state.partitions for name, state in total.state.items()} == {"0 stateStoreSave": 2, "1 dedupe": 2}
    assert total.state["1 dedupe"].removed
    assert query.progress is not None
    assert "rocksdbPutCount" in query.progress.state[0].custom
    observed = [batch.progress.observed for batch in reader.read(of_version(version)).app.batches.values()
                if batch.progress and batch.progress.rows_read and batch.progress.observed]  # fmt: skip
    assert [rows["rows"] for rows in observed] == [{"read": 20, "values": ["x"]}] * 4


def log_start(version: str) -> Line:
    """The first line of a log."""
    return {"Event": "SparkListenerLogStart", "Spark Version": version}


def test_a_bug_of_ours_is_no_unreadable_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named with its place, and the other lines are read."""

    def stumble(*_: object) -> None:
        raise TypeError("'<' not supported")

    monkeypatch.setattr(Application, "_job_end", stumble)
    read = reader.read(write(tmp_path / "app-1", program()))
    assert (read.unreadable_lines, read.read_errors.failed_events) == (0, 1)
    assert read.app.ended is not None
    (remark,) = read.remarks
    assert remark.startswith("A bug of spark-app: 1 event could not be processed")
    assert "JobEnd: TypeError: '<' not supported at test_reader.py:" in remark


@pytest.mark.parametrize(
    ("version", "is_known"),
    [
        ("3.4.4", False),
        ("3.5.0", True),
        ("3.5.1-amzn-0", True),
        ("4.0.0-preview2", True),
        ("4.3.7", True),
        ("4.4.0", False),
        ("1.3.1", False),
        ("unknown", False),
    ],
)
def test_a_version_that_is_not_known_is_said(version: str, tmp_path: Path, *, is_known: bool) -> None:
    """Its numbers may be missing or wrong; what says so names the version."""
    remarks = reader.read(write(tmp_path / "app-1", [log_start(version), *program()])).remarks
    assert [f"Spark {version} wrote the log, not Spark 3.5 to 4.3" in remark for remark in remarks] == [True] * (
        not is_known
    )


def test_what_an_old_log_lacks_is_unknown(tmp_path: Path) -> None:
    """Before 1.3 the times of jobs, before 2.1 the CPU time of tasks: neither 1970 nor 0."""
    lines = program()
    for line in lines:
        for absent in ("Submission Time", "Completion Time"):
            line.pop(absent, None)
    app, spans = walking.read(write(tmp_path / "app-1", lines))
    assert app.stages[0, 0].totals.cpu_ns is None
    assert all("spark.executor.cpu_time" not in span.attributes for span in spans)
    assert {span.kind.prefix: (span.started, span.ended) for span in spans}["job"] == (1000, 2900)
    top = headline(scope(app, None))
    assert (top.figures.cpu_ratio, top.figures.gc_ratio) == (None, 0)


@pytest.mark.parametrize("other", ["app-1", "app-2"], ids=["doubled", "joined"])
def test_a_second_application_in_a_log_is_left_out_and_said(other: str, tmp_path: Path) -> None:
    """Summed up, their numbers would be of neither."""
    second = [log_start("4.3.0"), log.executor(cores=7), *program(3, app_id=other)]
    read = reader.read(write(tmp_path / "app-1", [log_start("4.3.0"), log.executor(), *program(3), *second]))
    assert (read.app.id, len(read.app.stages[0, 0].durations_ms), read.app.slots) == ("app-1", 3, 4)
    assert read.read_errors.later_events == len(second)
    assert "another application, or the same one once more" in read.remarks[0]


def test_a_line_that_is_repeated_at_once_counts_once(tmp_path: Path) -> None:
    """As in a log whose lines were all written twice; its start is not that of another application."""
    lines = [line for line in [log_start("4.3.0"), *program(3)] for _ in range(2)]
    read = reader.read(write(tmp_path / "app-1", lines))
    assert len(read.app.stages[0, 0].durations_ms) == 3
    assert read.remarks == [f"Skipped {len(lines) // 2} events that the log has more than once."]


def test_negative_metrics_are_zero_and_said(tmp_path: Path) -> None:
    """Older versions take the time of a task from a clock that may be set back; its other numbers count."""
    lines = program(2)
    lines[3]["Task Metrics"] = {"Executor Run Time": -1490, "Executor CPU Time": 10, "JVM GC Time": -3}
    read = reader.read(write(tmp_path / "app-1", lines))
    assert (read.unreadable_lines, read.app.clock.corrections) == (0, 1)
    totals = read.app.stages[0, 0].totals
    assert (totals.run_ms, totals.cpu_ns, totals.gc_ms) == (90, 10, 0)


def test_a_clock_that_was_set_back_is_said_once(tmp_path: Path) -> None:
    """With how often and by how much times were corrected."""
    lines = program(2)
    for line in lines[3:5]:
        line["Task Info"]["Finish Time"] = 700
    (remark,) = reader.read(write(tmp_path / "app-1", lines)).remarks
    assert remark.startswith("The clock of the driver was set back by up to 1.5 s: corrected 2 times")


def test_a_file_that_is_damaged_from_its_start_is_said_to_be_damaged(tmp_path: Path) -> None:
    """Nothing of it can be unpacked, which is not the same as no event."""
    file = tmp_path / "app-1.zstd"
    file.write_bytes(b"\x28\xb5\x2f\xfd" + b"nonsense" * 9)
    with pytest.raises(InputError, match="cannot be unpacked: it is damaged"):
        reader.read(file)


def test_a_file_that_is_damaged_in_its_midst_is_said_to_be_damaged(tmp_path: Path) -> None:
    """What stands before is read."""
    frames = [zstandard.ZstdCompressor().compress(text(line).encode()) for line in program()]
    file = tmp_path / "app-1.zstd"
    file.write_bytes(b"".join([*frames[:4], frames[4][:-3], b"nonsense", *frames[5:]]))
    read = reader.read(file)
    assert len(read.app.stages[0, 0].durations_ms) == 1
    assert "Skipped the rest of 1 file of the log, which cannot be unpacked" in read.remarks[-1]


@pytest.mark.parametrize("codec", ["", ".zstd"], ids=["plain", "zstd"])
def test_a_finished_file_that_is_cut_off_is_said_to_be_incomplete(codec: str, tmp_path: Path) -> None:
    """As after a copy that was interrupted: in a line, or in a part that can be unpacked only as a whole."""
    lines = [text(line).encode() for line in [log_start("4.3.0"), *program(20)]]
    content = b"".join(zstandard.ZstdCompressor().compress(line) if codec else line for line in lines)
    file = tmp_path / f"app-1{codec}"
    file.write_bytes(content[: len(content) - 5])
    (remark,) = reader.read(file).remarks
    assert ("cannot be unpacked" if codec else "Skipped 1 incomplete line") in remark


def test_the_last_line_needs_no_line_break(tmp_path: Path) -> None:
    """Of a log that is finished: some tools cut off the last one."""
    file = write(tmp_path / "app-1", program())
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    read = reader.read(file)
    assert (read.app.ended, read.remarks) == (9000, [])
