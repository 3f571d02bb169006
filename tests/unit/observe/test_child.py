import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from app.observe.child import CommandError, run
from tests.polling import poll_until

TIMES: Final = 20
"""Two signals that come at once may be seen as one, but not each time."""
RUN: Final = """
import os, sys
from app.observe.child import run
sys.exit(run(sys.argv[1:], os.environ, look=lambda: None))
"""
# Tells each signal that it gets, and ends with 7 when it is told to. It does not print: a signal may come within.
LISTENER: Final = """
import os, signal, sys, time
def told(number, _):
    os.write(1, f"{signal.Signals(number).name}\\n".encode())
    if number == signal.SIGTERM: sys.exit(7)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1): signal.signal(number, told)
os.write(1, b"ready\\n")
while True: time.sleep(60)
"""


@contextmanager
def listening(folder: Path, *before: str, **options: Any) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A listener that runs below us, and the file of what it told."""
    told = folder / "told"
    command = [*before, sys.executable, "-c", RUN, sys.executable, "-c", LISTENER]
    with told.open("wb") as output, subprocess.Popen(command, stdout=output, **options) as process:
        try:
            poll_until(lambda: lines(told) == ["ready"], "the listener is not ready")
            yield process, told
        finally:
            process.kill()


def lines(file: Path) -> list[str]:
    """The lines that a listener has told."""
    return file.read_text(encoding="utf-8").splitlines()


def press(key: bytes, keyboard: int, told: Path) -> None:
    """Types a key, and waits until the listener tells something."""
    before = len(lines(told))
    os.write(keyboard, key)
    poll_until(lambda: len(lines(told)) > before, "what the key means")


def state(pid: int) -> str:
    """How Linux says that a process is: S asleep, T stopped."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
)
def test_the_exit_code_is_that_of_the_command(script: str, code: int) -> None:
    """An exit code stays as it is; a signal becomes 128 and its number, as in a shell."""
    assert run(["sh", "-c", script], os.environ, look=lambda: None) == code


def test_what_cannot_be_started_is_told(tmp_path: Path) -> None:
    """A command that is not there is 127, a file that is no program 126."""
    (tmp_path / "text").write_text("no program", encoding="utf-8")
    with pytest.raises(CommandError, match="no-such-command: command not found") as missing:
        run(["no-such-command"], os.environ, look=lambda: None)
    with pytest.raises(CommandError, match="Permission denied") as refused:
        run([str(tmp_path / "text")], os.environ, look=lambda: None)
    assert (missing.value.shell_code, refused.value.shell_code) == (127, 126)


def test_every_byte_passes_through(tmp_path: Path) -> None:
    """Standard input, output and error are those of the command, and nothing is added."""
    content = bytes(range(256)) * 1000
    done = subprocess.run(
        [sys.executable, "-c", RUN, "sh", "-c", "tee /dev/stderr"], input=content, capture_output=True, check=True
    )
    assert (done.stdout, done.stderr) == (content, content)


@pytest.mark.parametrize("before", [[], ["nohup"]])
def test_signals_have_the_effect_that_they_would_have_without_us(before: list[str]) -> None:
    """Nothing that Python or we block or ignore is blocked or ignored there; what our caller ignores still is."""
    command = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    shown, usual = [
        subprocess.run([*before, *start, *command], capture_output=True, text=True, check=True).stdout
        for start in ([sys.executable, "-c", RUN], [])
    ]
    # Those from 32 on are glibc's own.
    own = [[int(line.split()[1], 16) & 0x7FFFFFFF for line in each.splitlines()] for each in (shown, usual)]
    assert own[0] == own[1]


def test_a_signal_to_us_reaches_the_command(tmp_path: Path) -> None:
    """What somebody sends to us alone is passed on once, and the command decides what it means."""
    with listening(tmp_path) as (process, told):
        process.send_signal(signal.SIGUSR1)
        poll_until(lambda: len(lines(told)) == 2, "the first signal")
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 7
        assert lines(told) == ["ready", "SIGUSR1", "SIGTERM"]


def test_an_interrupt_at_the_terminal_comes_once(tmp_path: Path) -> None:
    """Ctrl-C reaches the command from the terminal itself; it is not sent a second time."""
    ours, theirs = os.openpty()
    with listening(tmp_path, "setsid", "--ctty", stdin=theirs) as (process, told):
        os.close(theirs)
        for _ in range(TIMES):
            press(b"\x03", ours, told)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 7
        assert lines(told) == ["ready", *["SIGINT"] * TIMES, "SIGTERM"]
    os.close(ours)


def test_we_stop_and_go_on_with_the_command(tmp_path: Path) -> None:
    """Ctrl-Z gives the terminal back: we stop when the command does, and it goes on when we do.

    In a group of its own, as a shell starts it: the kernel stops no group whose session nobody watches from outside.
    """
    with listening(tmp_path, process_group=0) as (process, told):
        process.send_signal(signal.SIGTSTP)
        poll_until(lambda: state(process.pid) == "T", "we have not stopped")
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 7
        assert lines(told) == ["ready", "SIGTERM"]
