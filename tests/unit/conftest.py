import importlib
import io
import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from spark_app.commands.init import contents
from spark_app.commands.terminal import Terminal

NUMBERS: Final = itertools.count()


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


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of a project as `spark-app init` writes it, and the folder that commands are given in."""
    before, package = list(sys.path), f"shop{next(NUMBERS)}"
    for name, text in contents(package, package).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path / package
    sys.path[:] = before
