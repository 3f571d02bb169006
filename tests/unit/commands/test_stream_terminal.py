import datetime
import io
import re
from dataclasses import replace
from typing import Any, Final

import pytest

from spark_app.commands.stream_terminal import StreamTerminal, line, live_table, summary
from spark_app.runs.run_record import RunRecord
from spark_app.runs.stream_status import StreamStatus
from tests.unit.conftest import Screen

RUNNING: Final = StreamStatus(
    "streaming.events",
    "running",
    counts={"read": 81_000, "late": 3},
    batches=42,
    input_rate=20.2,
    processed_rate=1000.0,
    output_rate=411.7,
    batch_ms=2310,
    lag_records=1_234,
    lag_seconds=61.0,
    watermark="2026-11-22T15:42:18.120Z",
    state_rows=17_112,
)
STARTING: Final = StreamStatus("streaming.carts", "starting")
STARTED_AT: Final = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def drawn(*statuses: StreamStatus, width: int = 200) -> list[str]:
    """The lines of the live table after 65 seconds."""
    return [text.plain for text in live_table(statuses, seconds=65, width=width)]


def cells(text: str) -> list[str]:
    """The cells of a row."""
    return re.split(r"  +", text.strip())


def record(pipeline: str, outcome: Any = "succeeded", **facts: float) -> RunRecord:
    """The record of a query that has read 10 rows, and late ones and dead letters if they are given."""
    counts = {name: int(facts.pop(name)) for name in ("late", "dead_letters") if name in facts}
    return RunRecord("r", pipeline, outcome, STARTED_AT, 75.0, counts={"read": 10} | counts, facts=facts)


def test_a_wide_table_has_all_columns() -> None:
    """The query by the name that users type; numbers are right-aligned, words are not."""
    title, headers, row = drawn(RUNNING)
    assert title == "1 min 05 s: 1 running; Ctrl-C stops"
    assert cells(headers) == [
        "query", "state", "input/s", "output/s", "batch", "batches", "lag", "lag time", "watermark", "state rows",
        "late",
    ]  # fmt: skip
    assert cells(row) == [
        "events", "running", "20", "412", "2.3 s", "42", "1,234", "1 min 01 s", "2026-11-22 15:42:18", "17,112", "3",
    ]  # fmt: skip
    assert headers.index("state") == row.index("running")
    assert headers.index("input/s") + len("input/s") == row.index("20 ") + 2


def test_what_is_unknown_is_no_0() -> None:
    """Before the first micro-batch nothing but their number is known."""
    assert cells(drawn(STARTING)[2]) == ["carts", "starting", "-", "-", "-", "0", *["-"] * 5]


@pytest.mark.parametrize("width", [30, 60, 80, 100])
def test_a_narrow_table_leaves_columns_out(width: int) -> None:
    """Those in which nothing is known go first, and lag in time stays; no row is wider than the terminal."""
    _, headers, *rows = drawn(RUNNING, STARTING, width=width)
    assert max(map(len, [headers, *rows])) <= max(width, len("events  starting  input/s    lag time"))
    assert cells(headers)[:2] == ["query", "state"]
    assert "lag time" in cells(headers)
    of_files = drawn(replace(RUNNING, lag_records=None), width=width)[1]
    assert width == 30 or "lag" not in cells(of_files)


def test_why_a_query_does_not_work_is_below_the_table() -> None:
    """In full, on one line, and with the name of the query."""
    failed = replace(STARTING, state="failed", error="no\nworker")
    again = replace(RUNNING, state="restarting", error="streaming.events: no broker of Kafka answers")
    assert drawn(failed, again)[-2:] == [r"streaming.carts: no\nworker", "streaming.events: no broker of Kafka answers"]
    assert drawn(failed, again)[0].endswith("1 failed, 1 restarting; Ctrl-C stops")


def test_a_reason_that_queries_share_is_said_once() -> None:
    """As when Java has ended: below the table with all their names, and in the line of the first that fails."""
    failed = [replace(STARTING, pipeline=f"streaming.{name}", state="failed", error="Java ended") for name in "abc"]
    assert drawn(*failed)[-1] == "streaming.a, streaming.b, streaming.c: Java ended"
    assert sum("Java ended" in text for text in drawn(*failed)) == 1
    err = io.StringIO()
    StreamTerminal(out=io.StringIO(), err=err).queries(failed)
    assert [text.partition("batches")[2] for text in err.getvalue().splitlines()] == [
        ": Java ended",
        ", for the same reason",
        ", for the same reason",
    ]


def test_records_that_kafka_deleted_unread_have_a_column() -> None:
    """However narrow the terminal is, and only where there are some."""
    lost = replace(RUNNING, counts={"read": 1, "deleted": 780})
    headers, first, second = drawn(lost, STARTING, width=60)[1:]
    assert (cells(headers)[-1], cells(first)[-1], cells(second)[-1]) == ("deleted", "780", "-")


@pytest.mark.parametrize("screen", [100], indirect=True)
def test_on_a_terminal_the_table_is_redrawn(screen: Screen) -> None:
    """In the place of the spinner, at the width of the terminal."""
    with StreamTerminal(out=screen.stream, err=screen.stream) as terminal:
        terminal.wait("starting Spark")
        terminal.queries([RUNNING])
    assert "1,234" in screen.text()


def test_without_a_terminal_a_query_has_a_line_when_its_state_changes() -> None:
    """A query that failed says why at once: the others may run for days."""
    err = io.StringIO()
    terminal = StreamTerminal(out=io.StringIO(), err=err)
    terminal.queries([STARTING])
    terminal.queries([STARTING])
    terminal.queries([replace(STARTING, state="failed", error="no worker")])
    assert err.getvalue().splitlines() == [
        "streaming.carts: starting, 0 records in 0 micro-batches",
        "streaming.carts: failed, 0 records in 0 micro-batches: no worker",
    ]
    assert line(replace(RUNNING, batches=1)) == "streaming.events: running, 81,000 records in 1 micro-batch"


def test_the_summary_has_a_row_per_query() -> None:
    """In the order of their names, with what is known at the end."""
    events = record("streaming.events", batches=3, restarts=0, lag_seconds=1.5)
    carts = record("streaming.carts", batches=0, restarts=0)
    headers, rows = summary([events, carts])
    assert headers == ["query", "batches", "rows in", "rows out", "lag", "lag time", "time"]
    assert rows == [
        ["carts", "0", "10", "-", "-", "-", "1 min 15 s"],
        ["events", "3", "10", "-", "-", "1.5 s", "1 min 15 s"],
    ]


def test_the_summary_says_what_went_wrong_and_nothing_of_what_did_not() -> None:
    """Outcomes that differ, restarts, late rows and dead letters."""
    late = record("streaming.events", "failed", batches=3, restarts=2, late=7)
    headers, rows = summary([record("streaming.dead_letters", batches=1, dead_letters=4), late])
    assert headers == [
        "query", "outcome", "batches", "rows in", "rows out", "late", "dead letters", "restarts", "lag", "lag time",
        "time",
    ]  # fmt: skip
    assert [row[5:8] for row in rows] == [["-", "4", "-"], ["7", "-", "2"]]
