import datetime
import io
import json
import os
import re
from decimal import Decimal
from pathlib import Path

import pytest

from spark_app.commands.terminal import Terminal
from tests.unit.conftest import Printed, Screen

DAY = "2024-01-01"
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


def test_without_a_terminal_steps_are_plain_lines(printed: Printed) -> None:
    """A line per step, without escape codes, carriage returns or wrapping; an unfinished step is `stopped`."""
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


def test_on_a_terminal_the_running_step_is_redrawn(screen: Screen) -> None:
    """Its finished line replaces it, and the cursor comes back."""
    run_steps(Terminal(out=screen.stream, err=screen.stream))
    text = screen.text()
    assert text.startswith("\x1b[?25l")
    assert "\x1b[?25h" in text
    assert "\r\x1b[2K" in text
    assert re.search(r"✓ \S*etl\.customers    2024-01-01  write bronze_customers     12,345 rows", text)
    assert re.search(r"✗ \S*etl\.customers    2024-01-01  publish customers +stopped", text)


def test_the_spinner_ends_with_the_first_step(printed: Printed, screen: Screen) -> None:
    """Without a terminal there is none."""
    for terminal in (printed.terminal, Terminal(out=screen.stream, err=screen.stream)):
        terminal.wait("starting Spark")
        run_steps(terminal)
    assert "starting Spark" not in printed.err.getvalue()
    before, _, after = screen.text().partition("read customers")
    assert "starting Spark" in before
    assert "starting Spark" not in after


def test_a_dumb_terminal_gets_plain_lines(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is redrawn."""
    monkeypatch.setenv("TERM", "dumb")
    run_steps(Terminal(out=screen.stream, err=screen.stream))
    assert screen.text().replace("\n", "").isprintable()


def test_no_color_disables_colours(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR set, no colour is written."""
    run_steps(Terminal(out=screen.stream, err=screen.stream))
    assert COLOUR.search(screen.text())
    monkeypatch.setenv("NO_COLOR", "1")
    run_steps(Terminal(out=screen.stream, err=screen.stream))
    assert not COLOUR.search(screen.text())


@pytest.mark.parametrize("name", ["FORCE_COLOR", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"])
def test_no_variable_makes_a_file_a_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a terminal gets escape codes, whatever the environment says."""
    monkeypatch.setenv(name, "1")
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(out=out, err=err)
    run_steps(terminal)
    terminal.table(("a",), [["succeeded"]], styles={"succeeded": "green"})
    assert "\x1b" not in out.getvalue() + err.getvalue()


def test_a_table_is_aligned_without_trailing_blanks(printed: Printed) -> None:
    """Columns are as wide as their widest cell, wide characters count as two; numbers are right-aligned."""
    printed.terminal.table(("name", "rows"), [["東京", "1"], ["b", "1,000"]], right=("rows",))
    assert printed.out.getvalue() == "name   rows\n東京      1\nb     1,000\n"
    printed.out.truncate(0)
    printed.terminal.table(("a", "b"), [["x", "long"], ["y", ""]])
    assert printed.out.getvalue().replace("\0", "") == "a  b\nx  long\ny\n"


def test_markup_and_control_characters_are_shown_as_text(printed: Printed) -> None:
    """A note cannot move the cursor."""
    printed.terminal.note("[red]x[/red] :smile: \x1b[2J")
    printed.terminal.table(("[b]h[/b]",), [["[/nothing]"]])
    assert printed.err.getvalue() == "[red]x[/red] :smile: \\x1b[2J\n"
    assert printed.out.getvalue() == "[b]h[/b]\n[/nothing]\n"


def test_without_a_terminal_lines_are_not_wrapped(printed: Printed) -> None:
    """A line of any length stays one line."""
    printed.terminal.table(("path",), [["x" * 5000]])
    printed.terminal.note("y" * 5000)
    assert printed.out.getvalue().count("\n") == 2
    assert printed.err.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    ("screen", "first"), [(13, "a    b    c"), (10, "a   b   c"), (8, "-- 1 --")], indirect=["screen"]
)
def test_a_table_that_is_too_wide_becomes_blocks(screen: Screen, first: str) -> None:
    """Columns move together first; if that is not enough, each row is a block of lines."""
    Terminal(out=screen.stream, err=screen.stream).table(("a", "b", "c"), [["111", "222", "3"], ["4", "5", "6"]])
    lines = STYLE.sub("", screen.text()).splitlines()
    assert lines[0] == first
    assert len(lines) == (8 if first.startswith("--") else 3)


def test_the_document_of_a_success_has_exit_code_0_and_no_error(printed: Printed) -> None:
    """Before the results."""
    printed.terminal.answer(rows=[1])
    assert json.loads(printed.out.getvalue()) == {"exit_code": 0, "error": None, "rows": [1]}


@pytest.mark.parametrize("screen", [44], indirect=True)
def test_a_long_last_column_is_wrapped(screen: Screen) -> None:
    """One long sentence does not break a table of short ones; no other column is wrapped."""
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
    """Decimals are strings, instants and dates ISO 8601, paths strings."""
    instant = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    printed.terminal.document({"a": Decimal("1.10"), "b": instant, "c": DAY, "d": Path("/x"), "e": None})
    assert json.loads(printed.out.getvalue()) == {
        "a": "1.10",
        "b": "2024-01-01T00:00:00Z",
        "c": "2024-01-01",
        "d": "/x",
        "e": None,
    }


def test_a_closed_stream_stops_nothing() -> None:
    """Notes, steps and tables are discarded without an error, also by the last flush."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        terminal = Terminal(out=stream, err=stream)
        run_steps(terminal)
        terminal.table(("a",), [["b"]])
        terminal.line("c" * 100_000)


def test_characters_that_the_encoding_lacks_are_escaped() -> None:
    """An ASCII stream gets escapes, not an error."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Terminal(out=stream, err=stream).table(("city",), [["東京"]])
    stream.flush()
    assert raw.getvalue() == b"city\n\\u6771\\u4eac\n"


def test_a_progress_bar_is_shown_only_on_a_terminal(printed: Printed, screen: Screen) -> None:
    """Without one, nothing is printed until the work is done."""
    for terminal in (printed.terminal, Terminal(out=screen.stream, err=screen.stream)):
        with terminal, terminal.counting("making 2024-01-01", 10_000) as advance:
            advance(10_000)
    assert printed.err.getvalue() == ""
    assert re.search(r"making 2024-01-01.*━.*10,000 rows", screen.text())


def test_a_path_leads_to_its_file_on_a_terminal(printed: Printed, screen: Screen) -> None:
    """Elsewhere it is plain text."""
    for terminal in (printed.terminal, Terminal(out=screen.stream, err=screen.stream)):
        terminal.line("r.html", link="file:///srv/r.html")
        terminal.facts([("report", "r.html")], links={"r.html": "file:///srv/r.html"})
    assert printed.out.getvalue().split() == ["r.html", "report", "r.html"]
    shown = screen.text()
    assert shown.count("file:///srv/r.html") == 2
    assert re.search(r"\x1b\]8;id=\d+;file:///srv/r\.html\x1b\\r\.html\x1b\]8;;\x1b\\", shown)


def test_a_dumb_terminal_gets_no_links(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would show their escapes."""
    monkeypatch.setenv("TERM", "dumb")
    Terminal(out=screen.stream, err=screen.stream).line("r.html", link="file:///srv/r.html")
    assert screen.text() == "r.html\n"
