import datetime
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from app.commands.terminal import Terminal
from app.records import RunResult


def run_result(**changes: Any) -> RunResult:
    """A run of customers that went well, but for the changes."""
    run = RunResult(
        run_id="r1",
        invocation_id="0123456789ab",
        pipeline="etl.customers",
        date=datetime.date(2024, 1, 1),
        outcome="succeeded",
        started_at=datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
        seconds=1.24,
        rows_read=12_345,
        rows_written=12_000,
        rows_quarantined=300,
        rows_duplicate=45,
        tables={"customers": "s3a://shop/customers"},
        folder=Path("/runs/r1"),
        error=None,
        trace_id="0" * 32,
        application_id="local-1",
        event_log="file:/events",
        spark_log="/logs/spark.jsonl",
    )
    return replace(run, **changes)


@dataclass(frozen=True)
class Printed:
    """A terminal style on streams that are no terminal, and what was printed on them."""

    terminal: Terminal
    out: io.StringIO
    err: io.StringIO


class Screen:
    """A real terminal of a given width; what a program writes on it can be read back."""

    def __init__(self, columns: int) -> None:
        import fcntl
        import struct
        import termios

        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = os.fdopen(slave, "w", encoding="utf-8")

    def text(self) -> str:
        """All that was written since the last look."""
        self.stream.write("\0")
        self.stream.flush()
        content = b""
        while not content.endswith(b"\0"):
            content += os.read(self._master, 65536)
        return content[:-1].decode("utf-8").replace("\r\n", "\n")

    def close(self) -> None:
        """Gives both ends back."""
        self.stream.close()
        os.close(self._master)


@pytest.fixture
def printed() -> Printed:
    """A terminal style that writes where no terminal is."""
    out, err = io.StringIO(), io.StringIO()
    return Printed(Terminal(out=out, err=err), out, err)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Screen]:
    """A terminal of 80 columns, or of as many as the test asks for."""
    monkeypatch.setenv("TERM", "xterm")
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    made = Screen(getattr(request, "param", 80))
    yield made
    made.close()
