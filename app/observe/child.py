"""Runs a command in place of us: the same terminal, the same signals, the same exit code."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from app.errors import UsageError

NOT_FOUND: Final = 127
NOT_RUNNABLE: Final = 126
LOOK_SECONDS: Final = 1.0
PASSED_ON: Final = frozenset(
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


class CommandError(UsageError):
    """A command that cannot be started; the exit code is that of a shell."""

    def __init__(self, command: str, error: OSError) -> None:
        """Says which, and why."""
        is_missing = isinstance(error, FileNotFoundError)
        self.shell_code = NOT_FOUND if is_missing else NOT_RUNNABLE
        super().__init__(f"{command}: {'command not found' if is_missing else error.strerror}")


def run(command: Sequence[str], variables: Mapping[str, str], *, look: Callable[[], None]) -> int:
    """Runs a command to its end; gives its exit code, or 128 and the number of the signal that killed it.

    What the terminal sends goes to the command by itself, as it is in our process group; what others send to us alone
    is passed on. When the command stops (Ctrl-Z), so do we, and the shell has the terminal back.

    Args:
        command: The program and its arguments, as they are.
        variables: Its environment.
        look: Called once a second while it runs.

    Raises:
        CommandError: It cannot be started.
    """
    watched = PASSED_ON | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        child = _started(command, variables, before)
        while True:
            code = _ended(child)
            if code is not None:
                return code
            told = signal.sigtimedwait(watched, LOOK_SECONDS)
            if told is None:
                look()
            elif told.si_signo != signal.SIGCHLD and told.si_code <= 0:  # by a process, not by the kernel
                os.kill(child, told.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _started(command: Sequence[str], variables: Mapping[str, str], mask: set[signal.Signals | int]) -> int:
    # What Python itself ignores must not be ignored by the command.
    usual = [signal.SIGPIPE, signal.SIGXFSZ]
    try:
        return os.posix_spawnp(command[0], list(command), dict(variables), setsigmask=mask, setsigdef=usual)
    except OSError as error:
        raise CommandError(command[0], error) from error


def _ended(child: int) -> int | None:
    """How the command ended; None while it is there. We stop while it is stopped."""
    ended, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
    if ended == 0:
        return None
    if os.WIFSTOPPED(status):
        os.kill(os.getpid(), signal.SIGSTOP)
        os.kill(child, signal.SIGCONT)
        return None
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
