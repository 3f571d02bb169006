import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from spark_app.observe.processes import busy_ns, has_context, launches_alive, python_workers
from tests.polling import poll_until

# Stands for a JVM: it has the option of one, and a thread of the name that a SparkContext's has.
NAMED: Final = """
import pathlib, sys
pathlib.Path("/proc/self/comm").write_text(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def running(thread: str, option: str) -> Iterator[int]:
    """A process with a thread of a name, and an option; gives its id."""
    command = [sys.executable, "-c", NAMED, thread, option]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid


def test_a_jvm_is_found_by_the_launch_id_in_its_command_line() -> None:
    """While it runs; JVMs of other commands are not found."""
    with running("java", "-Dspark.observed.launch=mine-7") as pid, running("java", "-Dspark.observed.launch=other-8"):
        assert launches_alive("mine") == {"mine-7": [Path(f"/proc/{pid}")]}
    assert launches_alive("mine") == {}


def test_a_spark_context_is_recognised_by_its_scheduler_thread() -> None:
    """A JVM without that thread, or a dead one, has none."""
    for thread, is_one in {"dag-scheduler-e": True, "java": False}.items():
        with running(thread, "") as pid:
            assert has_context(Path(f"/proc/{pid}")) is is_one
    assert not has_context(Path(f"/proc/{pid}"))


# Stands for the daemon of the Python workers below a JVM: it has a worker, which computes until its input ends.
DAEMON: Final = """
import os, select, sys
if os.fork() == 0:
    print(os.getpid(), flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]: sum(range(1000))
    os._exit(0)
os.wait()
"""


def test_workers_are_found_below_their_jvm_and_their_time_grows_while_they_compute() -> None:
    """Here this process is in the place of the JVM."""
    with subprocess.Popen([sys.executable, "-c", DAEMON], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        worker = Path(f"/proc/{int(daemon.stdout.readline())}")
        found = python_workers([Path(f"/proc/{os.getpid()}")])
        assert {Path(f"/proc/{daemon.pid}"), worker} <= set(found)
        assert Path(f"/proc/{os.getpid()}") not in found
        before = sum(busy_ns(worker).values())
        poll_until(lambda: sum(busy_ns(worker).values()) > before + 50_000_000, "50 ms of work")
    assert busy_ns(worker) == {}
