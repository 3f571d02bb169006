"""Fails tests that need the shared JVM when it has ended, at once: the one that waits for it, and all after it."""

import signal
import subprocess
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import pytest
from py4j.protocol import Py4JError

PATIENCE_SECONDS: Final = 10.0
"""How long the clean-up of a test may take after the JVM has ended."""
LOOK_SECONDS: Final = 0.1
END_SECONDS: Final = 1.0


class JvmEndedError(Exception):
    """The JVM of the shared session has ended, and nobody had asked it to."""


class JvmWatch:
    """A plugin of pytest. A test may wait for what a dead JVM would do, and only its main thread can end the wait.

    So a thread that awaits the end of the JVM sends a signal to the main thread, whose handler raises.
    """

    def __init__(self) -> None:
        """There is no JVM yet."""
        self._process: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None
        self._interrupt_at: float | None = None
        """When the present phase of a test is interrupted, if the JVM has ended; None where it does not need one."""
        self._closed = threading.Event()

    @property
    def is_dead(self) -> bool:
        """Whether the JVM has ended, though it is still needed."""
        return self._process is not None and self._process.poll() is not None

    def watch(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Watches a JVM until `close`; called on the main thread."""
        self._process, self._log = process, log
        signal.signal(signal.SIGUSR1, self._interrupt)
        threading.Thread(target=self._await_end, args=[process], name="awaits the JVM", daemon=True).start()

    def close(self) -> None:
        """The JVM may end now."""
        self._closed.set()
        self._process = None

    @contextmanager
    def phase(self, item: pytest.Item, *, patience: float = 0) -> Iterator[None]:
        """Raises in a phase of a test that needs the JVM, so many seconds after that has ended."""
        needs_jvm = "spark" in getattr(item, "fixturenames", ())
        if needs_jvm and self.is_dead and not patience:
            self._fail()
        self._interrupt_at = time.monotonic() + patience if needs_jvm else None
        try:
            yield
        except (Py4JError, OSError, EOFError):
            if needs_jvm and self._ends():
                self._fail()
            raise
        finally:
            self._interrupt_at = None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fails a test before its fixtures are set up, if its JVM has ended."""
        with self.phase(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fails a test when its JVM ends."""
        with self.phase(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Lets fixtures clean up, but not wait for the JVM."""
        with self.phase(item, patience=PATIENCE_SECONDS):
            return (yield)

    def _ends(self) -> bool:
        """Whether the JVM ends just now: its connections are closed before its process has ended."""
        with suppress(subprocess.TimeoutExpired):
            return self._process is not None and bool(self._process.wait(END_SECONDS))
        return False

    def _await_end(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        not_before = 0.0
        while not self._closed.wait(LOOK_SECONDS):
            interrupt_at = self._interrupt_at
            if interrupt_at is not None and time.monotonic() >= max(interrupt_at, not_before):
                not_before = time.monotonic() + PATIENCE_SECONDS
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        if self._interrupt_at is not None:
            self._fail()

    def _fail(self) -> NoReturn:
        code = None if self._process is None else self._process.returncode
        raise JvmEndedError(f"the JVM that all tests of this process share has ended ({code}); see {self._log}")
