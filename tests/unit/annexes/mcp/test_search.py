import json
from pathlib import Path
from typing import Any

import pytest

from spark_app.annexes.mcp.search import Hit, Wanted, search
from spark_app.redaction import REDACTED
from tests.unit.eventlog import log
from tests.unit.report import made

SECRET = "hunter2"
PLACES = [
    log.environment({"spark.my.password": SECRET}),
    {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": [["spark.my.password", SECRET]]},
    log.query(1) | {"description": f"jdbc:x://me:{SECRET}@db"},
    log.query(2) | {"modifiedConfigs": {"fs.s3a.secret.key": SECRET}},
    log.query(3) | {"physicalPlanDescription": f'options {{"apiKey": "{SECRET}", "b": 1}}'},
]


@pytest.fixture
def found(tmp_path: Path) -> Any:
    """Searches a log of some lines."""

    def of(lines: list[log.Line], most: int = 50, **wanted: Any) -> list[Hit]:
        written = made.written(tmp_path / "log", lines)
        asked: dict[str, Any] = {"text": "", "event": "", "after": 0, "width": 1000}
        return search(written, Wanted(**(asked | wanted)), most)

    return of


def test_events_are_found_by_name_and_text_in_any_case(found: Any) -> None:
    """With the number of their line and all that Spark wrote."""
    lines = [log.started(), log.task(1, 0), log.task(2, 0, error="No space left"), log.query(1), log.ended()]
    (hit,) = found(lines, event="taskend", text="no SPACE left")
    assert (hit.line, hit.event, json.loads(hit.content), hit.characters) == (3, "SparkListenerTaskEnd", lines[2], None)
    assert [hit.event for hit in found(lines, event="SQL")] == ["SparkListenerSQLExecutionStart"]
    assert [hit.line for hit in found(lines, after=2, most=2)] == [3, 4]


@pytest.mark.parametrize("line", PLACES)
def test_a_secret_is_neither_shown_nor_found(found: Any, line: log.Line) -> None:
    """Whoever searches for its first letters does not learn that they are right."""
    (hit,) = found([line])
    assert SECRET not in hit.content
    assert REDACTED in hit.content
    assert found([line], text=SECRET[:3]) == []


def test_of_a_long_event_the_part_around_the_match_is_shown(found: Any) -> None:
    """With the length of all of it."""
    line = log.query(1) | {"description": "a" * 5000 + " needle " + "b" * 5000}
    (hit,) = found([line], text="needle", width=200)
    assert (len(hit.content), "needle" in hit.content, hit.characters > 10_000) == (200, True, True)


def test_text_is_found_as_it_is_read(found: Any) -> None:
    """With quotes, line breaks and letters of any language."""
    line = log.query(1) | {"description": 'the "café"\nat C:\\temp'}
    assert len(found([line], text='"café"\nat c:\\temp')) == 1


def test_what_is_no_event_is_passed_over(tmp_path: Path) -> None:
    """A torn line, JSON of another kind, and an event that is nested too deeply, which is named."""
    deep = '{"Event":"SparkListenerDeep","plan":' + "[" * 600 + f'"password={SECRET}"' + "]" * 600 + "}"
    lines = ('{"Event":"Spark', "[1]", '"x"', '{"Event":7}', deep)
    (tmp_path / "log").write_text("".join(f"{line}\n" for line in lines))
    (hit,) = search(tmp_path / "log", Wanted("", "", 0, 1000), 50)
    assert (hit.line, hit.event, "nested too deeply" in hit.content) == (5, "SparkListenerDeep", True)
    assert search(tmp_path / "log", Wanted(SECRET, "", 0, 1000), 50) == []
