"""Runs a command as if in place of spark-app: same terminal, same signals, same exit code."""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from spark_app.errors import UsageError

NOT_FOUND: Final = 127
NOT_RUNNABLE: Final = 126
POLL_SECONDS: Final = 1.0
FORWARDED: Final = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGTSTP,
        signal.SIGUSR1,
        signal.SIGUSR2,
    }
)


def _ignore(_signal: int) -> None:
    """Does nothing."""


class CommandError(UsageError):
    """A command cannot be started; the exit code is that of a shell."""

    def __init__(self, command: str, error: OSError) -> None:
        """Names the command and the reason."""
        is_missing = isinstance(error, FileNotFoundError)
        self.shell_code = NOT_FOUND if is_missing else NOT_RUNNABLE
        super().__init__(f"{command}: {'command not found' if is_missing else error.strerror}")


def environment_of_user(environment: Mapping[str, str], *, prefix: str = sys.prefix) -> dict[str, str]:
    """The environment without the folder that `uvx` puts first on `PATH`: `python` is then the user's, with a PySpark.

    `uvx --with pyspark` keeps it, since the Python of spark-app then has one; so does an activated environment.

    Args:
        environment: The environment of this process.
        prefix: The folder of the Python environment that this process runs in.
    """
    first, _, rest = environment.get("PATH", "").partition(os.pathsep)
    is_of_uvx = first == f"{prefix}/bin" and "UV" in environment and environment.get("VIRTUAL_ENV") != prefix
    return {**environment, "PATH": rest} if is_of_uvx and find_spec("pyspark") is None else dict(environment)


def run(
    command: Sequence[str],
    variables: Mapping[str, str],
    *,
    look: Callable[[], None],
    hear: Callable[[int], object] = _ignore,
    printed: Path | None = None,
) -> int:
    """Runs a command to its end and returns its exit code, or 128 plus the number of the signal that killed it.

    The command receives signals of the terminal itself, as it is in the same process group; signals of other processes
    are forwarded. When the command stops (Ctrl-Z), spark-app stops, too, and the shell gets the terminal back.

    Args:
        command: The program and its arguments.
        variables: Its environment.
        look: Called once a second while it runs.
        hear: Called with each signal to this process, which the command has got, too.
        printed: A file for its output and its errors, instead of those of this process; its input is empty then.

    Raises:
        CommandError: The command cannot be started.
    """
    watched = FORWARDED | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        child = _started(command, variables, before, _files(printed))
        while True:
            code = _ended(child)
            if code is not None:
                return code
            received = signal.sigtimedwait(watched, POLL_SECONDS)
            if received is None:
                look()
                continue
            if received.si_signo != signal.SIGCHLD:
                hear(received.si_signo)
            if received.si_signo != signal.SIGCHLD and received.si_code <= 0:  # by a process, not by the kernel
                os.kill(child, received.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _files(printed: Path | None) -> list[tuple[int, ...]]:
    """What the descriptors 0 to 2 of a command are, where they are not those of this process."""
    if printed is None:
        return []
    new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    return [nothing, (os.POSIX_SPAWN_OPEN, 1, str(printed), new, 0o600), (os.POSIX_SPAWN_DUP2, 1, 2)]  # type: ignore[list-item]


def _started(
    command: Sequence[str],
    variables: Mapping[str, str],
    mask: set[signal.Signals | int],
    files: Sequence[tuple[int, ...]],
) -> int:
    # Signals that Python ignores keep their default action in the command.
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    try:
        return os.posix_spawnp(
            command[0], list(command), dict(variables), setsigmask=mask, setsigdef=defaults, file_actions=files
        )
    except OSError as error:
        raise CommandError(command[0], error) from error


def _ended(child: int) -> int | None:
    """The exit code of the command; None while it runs. Stops spark-app while the command is stopped."""
    ended, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
    if ended == 0:
        return None
    if os.WIFSTOPPED(status):
        os.kill(os.getpid(), signal.SIGSTOP)
        os.kill(child, signal.SIGCONT)
        return None
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
