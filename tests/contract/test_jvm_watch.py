"""A test run does not hang where the JVM that its tests share has ended."""

import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from tests.jvm_watch import JvmEndedError, JvmWatch

WITH_SPARK: Final[Any] = SimpleNamespace(fixturenames=["spark", "tmp_path"])
WITHOUT: Final[Any] = SimpleNamespace(fixturenames=["tmp_path"])
ENDED: Final = r"the JVM that all tests of this process share has ended \(-9\); see spark\.jsonl"


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    """What takes the place of the JVM."""
    with subprocess.Popen(["sleep", "600"]) as started:
        yield started
        started.kill()


@pytest.fixture
def watch(process: "subprocess.Popen[bytes]") -> Iterator[JvmWatch]:
    """A watch of its own."""
    before, started = signal.getsignal(signal.SIGUSR1), JvmWatch()
    started.watch(process, Path("spark.jsonl"))
    yield started
    started.close()
    signal.signal(signal.SIGUSR1, before)


def kill_and_wait(process: "subprocess.Popen[bytes]") -> None:
    """Waits for what will not come."""
    process.kill()
    threading.Event().wait(60)


def test_a_test_that_waits_for_a_jvm_that_ends_fails(process: "subprocess.Popen[bytes]", watch: JvmWatch) -> None:
    """At once, whatever it waits for; so do those after it that need the JVM, and no others."""
    with pytest.raises(JvmEndedError, match=ENDED), watch.phase(WITH_SPARK):
        kill_and_wait(process)
    with pytest.raises(JvmEndedError, match=ENDED), watch.phase(WITH_SPARK):
        pass
    with watch.phase(WITHOUT):
        pass


def test_clean_up_ends_too_where_it_waits_for_the_jvm(process: "subprocess.Popen[bytes]", watch: JvmWatch) -> None:
    """After a while, in which it can end what it has started."""
    with pytest.raises(JvmEndedError), watch.phase(WITH_SPARK, patience=0.3):
        kill_and_wait(process)


def test_a_jvm_that_is_asked_to_end_fails_no_test(process: "subprocess.Popen[bytes]", watch: JvmWatch) -> None:
    """As at the end of the session."""
    watch.close()
    process.kill()
    process.wait()
    with watch.phase(WITH_SPARK):
        assert not watch.is_dead
