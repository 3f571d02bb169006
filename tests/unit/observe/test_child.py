import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.observe.child import CommandError, environment_of_user, run
from tests.polling import poll_until

TIMES: Final = 20
"""Two signals that come at once may be seen as one, but not each time."""
RUN: Final = """
import os, sys
from spark_app.observe.child import run
sys.exit(run(sys.argv[1:], os.environ, look=lambda: None))
"""
# Writes each signal that it receives, and exits with 7 on SIGTERM. It does not print, which a signal may interrupt.
LISTENER: Final = """
import os, signal, sys, time
def record(number, _):
    os.write(1, f"{signal.Signals(number).name}\\n".encode())
    if number == signal.SIGTERM: sys.exit(7)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1): signal.signal(number, record)
os.write(1, b"ready\\n")
while True: time.sleep(60)
"""


@contextmanager
def listening(folder: Path, *before: str, **options: Any) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A listener in a child process, and the file of the signals that it received."""
    received = folder / "received"
    command = [*before, sys.executable, "-c", RUN, sys.executable, "-c", LISTENER]
    with received.open("wb") as output, subprocess.Popen(command, stdout=output, **options) as process:
        try:
            poll_until(lambda: lines(received) == ["ready"], "the listener is not ready")
            yield process, received
        finally:
            process.kill()


def lines(file: Path) -> list[str]:
    """The lines that a listener has received."""
    return file.read_text(encoding="utf-8").splitlines()


def press(key: bytes, keyboard: int, received: Path) -> None:
    """Types a key, and waits until the listener writes a line."""
    before = len(lines(received))
    os.write(keyboard, key)
    poll_until(lambda: len(lines(received)) > before, "what the key means")


def state(pid: int) -> str:
    """How Linux says that a process is: S asleep, T stopped."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
)
def test_the_exit_code_is_that_of_the_command(script: str, code: int) -> None:
    """An exit code stays as it is; a signal becomes 128 and its number, as in a shell."""
    assert run(["sh", "-c", script], os.environ, look=lambda: None) == code


def test_a_command_that_cannot_start_exits_like_a_shell(tmp_path: Path) -> None:
    """127 if it is missing, 126 if it is not executable."""
    (tmp_path / "text").write_text("no program", encoding="utf-8")
    with pytest.raises(CommandError, match="no-such-command: command not found") as missing:
        run(["no-such-command"], os.environ, look=lambda: None)
    with pytest.raises(CommandError, match="Permission denied") as refused:
        run([str(tmp_path / "text")], os.environ, look=lambda: None)
    assert (missing.value.shell_code, refused.value.shell_code) == (127, 126)


def test_standard_streams_are_those_of_the_command(tmp_path: Path) -> None:
    """Byte for byte."""
    content = bytes(range(256)) * 1000
    done = subprocess.run(
        [sys.executable, "-c", RUN, "sh", "-c", "tee /dev/stderr"], input=content, capture_output=True, check=True
    )
    assert (done.stdout, done.stderr) == (content, content)


@pytest.mark.parametrize("before", [[], ["nohup"]])
def test_signals_have_their_usual_effect_on_the_command(before: list[str]) -> None:
    """What Python blocks or ignores is not blocked or ignored there; what the caller ignores is."""
    command = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    shown, usual = [
        subprocess.run([*before, *start, *command], capture_output=True, text=True, check=True).stdout
        for start in ([sys.executable, "-c", RUN], [])
    ]
    # Those from 32 on are glibc's own.
    own = [[int(line.split()[1], 16) & 0x7FFFFFFF for line in each.splitlines()] for each in (shown, usual)]
    assert own[0] == own[1]


def test_a_signal_to_spark_app_is_forwarded_once(tmp_path: Path) -> None:
    """The command decides what it means."""
    with listening(tmp_path) as (process, received):
        process.send_signal(signal.SIGUSR1)
        poll_until(lambda: len(lines(received)) == 2, "the first signal")
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 7
        assert lines(received) == ["ready", "SIGUSR1", "SIGTERM"]


def test_ctrl_c_at_the_terminal_arrives_once(tmp_path: Path) -> None:
    """It is not forwarded a second time."""
    keyboard, terminal = os.openpty()
    with listening(tmp_path, "setsid", "--ctty", stdin=terminal) as (process, received):
        os.close(terminal)
        for _ in range(TIMES):
            press(b"\x03", keyboard, received)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 7
        assert lines(received) == ["ready", *["SIGINT"] * TIMES, "SIGTERM"]
    os.close(keyboard)


def test_we_stop_and_go_on_with_the_command(tmp_path: Path) -> None:
    """Ctrl-Z gives the terminal back: we stop when the command does, and it goes on when we do.

    In a group of its own, as a shell starts it: the kernel stops no group whose session nobody watches from outside.
    """
    with listening(tmp_path, process_group=0) as (process, received):
        process.send_signal(signal.SIGTSTP)
        poll_until(lambda: state(process.pid) == "T", "we have not stopped")
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 7
        assert lines(received) == ["ready", "SIGTERM"]


def test_a_command_below_uvx_has_the_python_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the environment of `uvx` has a PySpark, or is activated and so the user's own."""
    given = {"UV": "/uv", "PATH": "/cache/tool/bin:/venv/bin:/bin", "VIRTUAL_ENV": "/venv"}
    assert environment_of_user(given, prefix="/cache/tool") == given
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert environment_of_user(given, prefix="/cache/tool") == given | {"PATH": "/venv/bin:/bin"}
    for kept in (
        given | {"VIRTUAL_ENV": "/cache/tool"},
        given | {"PATH": "/venv/bin:/cache/tool/bin"},
        {"PATH": "/cache/tool/bin"},
        {},
    ):
        assert environment_of_user(kept, prefix="/cache/tool") == kept


def test_what_a_command_prints_may_go_to_a_file(tmp_path: Path) -> None:
    """Output and errors in their order; its input is empty then."""
    program = "import sys; print(sys.stdin.read() or 'nothing', flush=True); sys.exit('error')"
    code = run([sys.executable, "-c", program], os.environ, look=lambda: None, printed=tmp_path / "printed")
    assert (code, (tmp_path / "printed").read_text(encoding="utf-8")) == (1, "nothing\nerror\n")


def test_who_runs_a_command_hears_of_signals(tmp_path: Path) -> None:
    """Of those to the process itself, also if the command ignores them."""
    heard = tmp_path / "heard"
    hears = RUN.replace(
        "look=lambda: None", f"look=lambda: None, hear=lambda n: open({str(heard)!r}, 'a').write(f'{{n}} ')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hears, sys.executable, "-c", LISTENER], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == b"SIGUSR1\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 7
    assert heard.read_text(encoding="utf-8") == f"{signal.SIGUSR1:d} {signal.SIGTERM:d} "
