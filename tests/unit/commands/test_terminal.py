import datetime
import io
import json
import os
import re
from decimal import Decimal
from pathlib import Path

import pytest

from app.commands.terminal import Terminal
from tests.unit.commands.conftest import Printed, Screen

DAY = datetime.date(2024, 1, 1)
STYLE = re.compile(r"\x1b\[[\d;]*m")
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3|9)\d(?:;\d+)*m")


def run_steps(terminal: Terminal) -> None:
    """A step that ends, and one that does not."""
    with terminal:
        terminal.step_started("etl.customers", DAY, "read customers")
        terminal.step_ended("etl.customers", DAY, "read customers", 1.26, None)
        terminal.step_started("etl.customers", DAY, "write bronze_customers")
        terminal.step_ended("etl.customers", DAY, "write bronze_customers", 75, 12_345)
        terminal.step_started("etl.customers", DAY, "publish customers")


def test_where_no_terminal_is_steps_are_plain_lines(printed: Printed) -> None:
    """A line per step, without escape codes, carriage returns or folding; one that did not end has stopped."""
    run_steps(printed.terminal)
    lines = printed.err.getvalue().splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["etl.customers", "2024-01-01", "read", "customers", "-", "1.3", "s"],
        ["etl.customers", "2024-01-01", "write", "bronze_customers", "12,345", "rows", "1", "min", "15", "s"],
    ]
    assert re.fullmatch(r" *etl.customers +2024-01-01 +publish customers +stopped +(< 1|\d+) ms", lines[2])
    assert len(lines) == 3
    assert printed.err.getvalue().replace("\n", "").isprintable()
    assert printed.out.getvalue() == ""


def test_on_a_terminal_the_step_at_work_is_shown_live(screen: Screen) -> None:
    """The step at work is a line that is redrawn; its finished line replaces it, and the cursor comes back."""
    run_steps(Terminal(out=screen.stream, err=screen.stream))
    text = screen.text()
    assert text.startswith("\x1b[?25l")
    assert "\x1b[?25h" in text
    assert "\r\x1b[2K" in text
    assert re.search(r"✓ \S*etl\.customers    2024-01-01  write bronze_customers     12,345 rows", text)
    assert re.search(r"✗ \S*etl\.customers    2024-01-01  publish customers +stopped", text)


def test_what_is_waited_for_is_shown_only_until_the_first_step(printed: Printed, screen: Screen) -> None:
    """The seconds until Spark is there are no silence on a terminal; elsewhere nothing is said."""
    for terminal in (printed.terminal, Terminal(out=screen.stream, err=screen.stream)):
        terminal.wait("starting Spark")
        run_steps(terminal)
    assert "starting Spark" not in printed.err.getvalue()
    before, _, after = screen.text().partition("read customers")
    assert "starting Spark" in before
    assert "starting Spark" not in after


def test_a_dumb_terminal_gets_plain_lines(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where lines cannot be redrawn, none is."""
    monkeypatch.setenv("TERM", "dumb")
    run_steps(Terminal(out=screen.stream, err=screen.stream))
    assert screen.text().replace("\n", "").isprintable()


def test_no_color_is_honoured(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR set no colour is sent."""
    run_steps(Terminal(out=screen.stream, err=screen.stream))
    assert COLOUR.search(screen.text())
    monkeypatch.setenv("NO_COLOR", "1")
    run_steps(Terminal(out=screen.stream, err=screen.stream))
    assert not COLOUR.search(screen.text())


@pytest.mark.parametrize("name", ["FORCE_COLOR", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"])
def test_no_variable_makes_a_terminal_of_a_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a terminal gets escape codes, whatever the environment says."""
    monkeypatch.setenv(name, "1")
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(out=out, err=err)
    run_steps(terminal)
    terminal.table(("a",), [["succeeded"]], styles={"succeeded": "green"})
    assert "\x1b" not in out.getvalue() + err.getvalue()


def test_a_table_lines_up_and_ends_without_blanks(printed: Printed) -> None:
    """Columns are as wide as their widest cell, wide characters counted as two; numbers are set to the right."""
    printed.terminal.table(("name", "rows"), [["東京", "1"], ["b", "1,000"]], right=("rows",))
    assert printed.out.getvalue() == "name   rows\n東京      1\nb     1,000\n"
    printed.out.truncate(0)
    printed.terminal.table(("a", "b"), [["x", "long"], ["y", ""]])
    assert printed.out.getvalue().replace("\0", "") == "a  b\nx  long\ny\n"


def test_markup_and_control_characters_are_no_orders(printed: Printed) -> None:
    """What looks like markup is text; a note cannot move the cursor."""
    printed.terminal.note("[red]x[/red] :smile: \x1b[2J")
    printed.terminal.table(("[b]h[/b]",), [["[/nothing]"]])
    assert printed.err.getvalue() == "[red]x[/red] :smile: \\x1b[2J\n"
    assert printed.out.getvalue() == "[b]h[/b]\n[/nothing]\n"


def test_lines_are_not_folded_where_no_terminal_is(printed: Printed) -> None:
    """A line of any length stays one line."""
    printed.terminal.table(("path",), [["x" * 5000]])
    printed.terminal.note("y" * 5000)
    assert printed.out.getvalue().count("\n") == 2
    assert printed.err.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    ("screen", "first"), [(13, "a    b    c"), (10, "a   b   c"), (8, "-- 1 --")], indirect=["screen"]
)
def test_a_table_too_wide_for_the_terminal_is_set_below_itself(screen: Screen, first: str) -> None:
    """Columns move together first; where that does not help, each row is a block of lines."""
    Terminal(out=screen.stream, err=screen.stream).table(("a", "b", "c"), [["111", "222", "3"], ["4", "5", "6"]])
    lines = STYLE.sub("", screen.text()).splitlines()
    assert lines[0] == first
    assert len(lines) == (8 if first.startswith("--") else 3)


def test_an_answer_says_that_all_went_well(printed: Printed) -> None:
    """Exit code 0 and no error come first, then what was asked for."""
    printed.terminal.answer(rows=[1])
    assert json.loads(printed.out.getvalue()) == {"exit_code": 0, "error": None, "rows": [1]}


@pytest.mark.parametrize("screen", [44], indirect=True)
def test_a_long_last_column_is_folded_below_itself(screen: Screen) -> None:
    """One long sentence does not tear a table of short ones apart; no column but the last is folded."""
    rows = [["jaeger", "down", "it does not answer: connection refused by host"], ["kafka", "ok", ""]]
    terminal = Terminal(out=screen.stream, err=screen.stream)
    terminal.table(("hop", "is", "found"), rows, is_prose=True)
    assert STYLE.sub("", screen.text()).splitlines() == [
        "hop     is    found",
        "jaeger  down  it does not answer: connection",
        "              refused by host",
        "kafka   ok",
    ]
    terminal.table(("hop", "is", "found"), [["x" * 20, "down", "y" * 40]], is_prose=True)
    assert STYLE.sub("", screen.text()).splitlines()[0].startswith("hop    x")


def test_json_is_one_document(printed: Printed) -> None:
    """Decimals are text, instants and days ISO 8601, paths text."""
    instant = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    printed.terminal.document({"a": Decimal("1.10"), "b": instant, "c": DAY, "d": Path("/x"), "e": None})
    assert json.loads(printed.out.getvalue()) == {
        "a": "1.10",
        "b": "2024-01-01T00:00:00Z",
        "c": "2024-01-01",
        "d": "/x",
        "e": None,
    }


def test_a_reader_that_went_away_stops_nothing() -> None:
    """Notes, steps and tables go nowhere when nobody reads them; no error comes of it, not even at the last flush."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        terminal = Terminal(out=stream, err=stream)
        run_steps(terminal)
        terminal.table(("a",), [["b"]])
        terminal.line("c" * 100_000)


def test_characters_that_the_stream_cannot_hold_are_escaped() -> None:
    """A stream of plain ASCII gets escapes, not an error."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Terminal(out=stream, err=stream).table(("city",), [["東京"]])
    stream.flush()
    assert raw.getvalue() == b"city\n\\u6771\\u4eac\n"


def test_counting_shows_a_bar_only_on_a_terminal(printed: Printed, screen: Screen) -> None:
    """A long work of known size moves a bar; where no terminal is, nothing is said until it is done."""
    for terminal in (printed.terminal, Terminal(out=screen.stream, err=screen.stream)):
        with terminal, terminal.counting("making 2024-01-01", 10_000) as advance:
            advance(10_000)
    assert printed.err.getvalue() == ""
    assert re.search(r"making 2024-01-01.*━.*10,000 rows", screen.text())
