"""Logs that every Spark from 3.5 to 4.3 has really written tell the same, in each layout."""

import inspect
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from app.errors import InputError
from app.eventlog import events, parts, reading
from app.eventlog.comparison.wallclock import wall_clock
from app.eventlog.operators import plan_of
from tests.eventlogs import golden, record, walking
from tests.unit.eventlog.log import Line, task
from tests.unit.eventlog.logs import program, write

TREE: Final = (record.HERE / "golden.txt").read_text(encoding="utf-8")
CONDITION: Final = "USER_RAISED_EXCEPTION"
EVERY_LOG: Final = pytest.mark.parametrize(("version", "layout"), golden.LOGS)


@EVERY_LOG
def test_every_log_tells_the_same_tree(version: str, layout: str, tmp_path: Path) -> None:
    """Kinds, names, parents, counts and rows; 3.5 has no name for the condition that a program raises itself."""
    _, found = walking.told(golden.log(version, layout, tmp_path))
    expected = TREE.replace(CONDITION, "java.lang.RuntimeException") if version.startswith("3.5") else TREE
    assert golden.tree(found) == expected


@EVERY_LOG
def test_no_span_is_without_its_parent(version: str, layout: str, tmp_path: Path) -> None:
    """0 orphans, no id twice, times and traces of children within those of their parents."""
    walking.assert_is_forest(*walking.told(golden.log(version, layout, tmp_path)))


@EVERY_LOG
def test_every_line_is_read(version: str, layout: str, tmp_path: Path) -> None:
    """Nothing is torn, lost or unreadable, and the log says that it is whole."""
    read = reading.read(golden.log(version, layout, tmp_path))
    assert (read.unreadable_lines, read.troubles.torn_lines, read.troubles.lost_files) == (0, 0, 0)
    assert read.is_finished
    assert (read.app.spark_version, read.app.running) == (version, 0)


@EVERY_LOG
def test_a_failure_has_its_message_at_every_level(version: str, layout: str, tmp_path: Path) -> None:
    """What the program raised itself, and what its Python function did: of query, job, stage and task.

    A task that was killed for it says why, but has not failed by itself.
    """
    _, found = walking.told(golden.log(version, layout, tmp_path))
    kinds = {"sql", "job", "stage", "task"}
    for text, type_ in (("this query fails on purpose", None), ("no number", "LookupError")):
        failures = [(span.kind.prefix, span.failure) for span in found if span.failure and text in span.failure.message]
        assert {kind for kind, _ in failures} == kinds
        assert len({failure.type for _, failure in failures} - {"TaskKilled"}) == 1
        assert type_ in (None, failures[0][1].type)


@EVERY_LOG
def test_operators_have_counted_their_rows(version: str, layout: str, tmp_path: Path) -> None:
    """The join of the step gave all rows, its aggregate one for each name."""
    app, _ = walking.told(golden.log(version, layout, tmp_path))
    operators = [operator for _, operator in plan_of(app.queries[0], app.numbers).root.walk()]
    rows = {operator.name: operator.numbers["number of output rows"].value for operator in operators
            if "number of output rows" in operator.numbers}  # fmt: skip
    assert next(value for name, value in rows.items() if name.endswith("Join")) == 2000
    assert rows["HashAggregate"] == 7


@pytest.mark.parametrize("version", record.VERSIONS)
def test_what_an_older_version_does_not_tell_is_absent(version: str, tmp_path: Path) -> None:
    """The exit code of the driver is told from 4.0 on."""
    _, found = walking.told(golden.log(version, "zstd", tmp_path))
    application = next(span for span in found if span.kind.prefix == "application")
    assert ("spark.app.exit_code" in application.attributes) == (version >= "4")


@pytest.mark.parametrize("version", record.VERSIONS)
def test_every_field_that_is_read_is_written(version: str, tmp_path: Path) -> None:
    """A field of another name would be taken for absent; what only a lost executor or a kill tells is not there."""
    written = set[str]()
    for line in walking.lines(golden.log(version, "zstd", tmp_path)):
        written |= set(keys(json.loads(line)))
    assert declared() - written <= RARE | NEW.get(version[:3], set())


@pytest.mark.parametrize(
    "fields",
    [
        {"Task Info": {"Finish Time": 2**64 - 1}},
        {"Task Info": {"Launch Time": 2**63}},
        {"Task Info": {"Launch Time": -(2**63) - 1}},
        {"Task Metrics": {"Memory Bytes Spilled": 2**63}},
        {"Task Metrics": {"Shuffle Read Metrics": {"Remote Bytes Read": 2**63 - 1, "Local Bytes Read": 1}}},
        {"Task Metrics": {"Executor CPU Time": 2**200}},
    ],
)
def test_a_number_that_no_spark_wrote_costs_its_line(fields: Line, tmp_path: Path) -> None:
    """It is counted, and what the other lines tell is as if it were not there: every section of a report needs it."""
    broken = task(7, 0)
    for part, values in fields.items():
        broken[part] |= values
    lines = program(3)
    whole = reading.read(write(tmp_path / "whole", lines))
    read = reading.read(write(tmp_path / "broken", [*lines[:4], broken, *lines[4:]]))
    assert (read.unreadable_lines, whole.unreadable_lines) == (1, 0)
    assert (read.app.last, wall_clock(read.app)) == (whole.app.last, wall_clock(whole.app))
    assert read.app.stages[0, 0].totals == whole.app.stages[0, 0].totals


def test_the_newest_log_is_the_one_that_was_written_last(tmp_path: Path) -> None:
    """By its files: the folder of a rolled log changes only when a file is added to it."""
    for name, changed in (("eventlog_v2_a", 2000), ("eventlog_v2_b", 1000)):
        log = write(tmp_path / name / "events_1_app-1", program())
        os.utime(log, (changed, changed))
        os.utime(log.parent, (3000 - changed, 3000 - changed))
    assert reading.read(tmp_path).log == tmp_path / "eventlog_v2_a"


def test_what_lies_beside_logs_is_no_log(tmp_path: Path) -> None:
    """However new it is; a folder without any log is told, and so is a log that must be unpacked elsewhere."""
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    (tmp_path / "empty").touch()
    os.utime(tmp_path / "notes.txt", (2e9, 2e9))
    with pytest.raises(InputError, match="no event log in"):
        reading.find_log(tmp_path)
    log = write(tmp_path / "app-1", program())
    assert reading.find_log(tmp_path) == log
    (tmp_path / "app-2.lz4").touch()
    os.utime(tmp_path / "app-2.lz4", (2e9, 2e9))
    with pytest.raises(InputError, match="to zstd"):
        reading.read(tmp_path)


RARE: Final = {
    "App Attempt ID", "Executor Metrics", "ExecutorMetrics", "Getting Result Time", "Kill Reason", "Loss Reason",
    "Removed Reason",
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
    """The names of all fields that events are decoded to."""
    kinds = {kind for module in (parts, events) for kind in vars(module).values() if inspect.isclass(kind)}
    fields = [msgspec.structs.fields(kind) for kind in kinds if issubclass(kind, msgspec.Struct)]
    return {field.encode_name for kind in fields for field in kind}


def test_names_of_the_machine_are_not_kept() -> None:
    """What is recorded is in the repository for good."""
    for version, layout in golden.LOGS:
        if layout != "plain":
            content = b"".join(walking.lines(golden.log(version, layout, Path())))
            assert [name for name in (b"/tmp/", b"/home/", b"/root/", b"/usr/") if name in content] == []
