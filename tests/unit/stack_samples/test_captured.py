"""The samples of processes become those of an application."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from spark_app.stack_samples.captured import TASK, Captured, make_folders, read, read_folder
from spark_app.stack_samples.flight_recordings import MONITOR, PARK, JavaFrame, JavaSample, Recording
from spark_app.stack_samples.python_stacks import PythonProcess, PythonSample
from spark_app.stack_samples.samples import Span
from tests.unit.stack_samples.test_flight_recordings import recorded

RUN: Final = JavaFrame(TASK, "run", 3)
WORK: Final = JavaFrame("Work$$Lambda$812/0x00007f", "apply", 0)
OTHER: Final = JavaFrame("sun.nio.ch.EPoll", "wait", 0)


def java(at_ms: int, *frames: JavaFrame, event: str = "jdk.ExecutionSample") -> JavaSample:
    """A sample of a JVM."""
    return JavaSample(at_ms, event, 31, frames, is_complete=True)


def python(pid: int, jvm: int | None, *at_ms: int, launch: str | None = None) -> PythonProcess:
    """A process with samples of one function; a driver if it has no JVM."""
    process = PythonProcess(
        "python_worker" if jvm else "python_driver", pid, jvm, "host", 10.0, 0, launch, "/srv", "-c", []
    )
    process.frames.append(("job.py", "score", 7))
    process.stacks.append([0])
    process.samples += [PythonSample(each, 1, 0, "running", 12 if jvm else None, 1.5) for each in at_ms]
    return process


def test_processes_have_the_ids_of_their_executors() -> None:
    """Those of other applications are left out; the driver that `spark-submit` started is known by its launch."""
    java_processes = {
        1: Recording(),
        2: Recording([java(5, RUN, WORK)], "Backend --executor-id 4 --app-id app-1 --hostname h"),
        3: Recording([java(5, RUN, WORK)], "Backend --executor-id 4 --app-id app-2 --hostname h"),
    }
    found = Captured(java_processes, [python(7, None, 5, launch="ab-1"), python(8, 2, 6), python(9, 3, 6)])
    samples = found.of(1, "app-1", 0, 10, interval_ms=20.0)
    assert [(each.role, each.executor, each.pid) for each in samples.processes] == [
        ("driver", "driver", 1),
        ("executor", "4", 2),
        ("python_driver", None, 7),
        ("python_worker", "4", 8),
    ]
    assert [(each.process, each.task, each.weight) for each in samples.samples] == [
        (1, None, 1.0),
        (2, None, 1.5),
        (3, 12, 1.5),
    ]
    assert [frame.function for frame in samples.frames] == [f"{TASK}.run", "Work$$Lambda.apply", "score"]
    assert samples.frames[-1].is_own


def test_executors_of_other_hosts_are_known_by_their_arguments() -> None:
    """Their process ids are those of other processes, too; the host is that of their Python workers."""
    arguments = "Backend --executor-id {} --app-id {} --hostname h"
    executors = [(7, Recording([java(5, RUN)], arguments.format(*each))) for each in ((1, "a"), (2, "a"), (1, "b"))]
    workers = [python(8, 7, 5), python(8, 7, 6), python(8, 7, 6)]
    for worker, who in zip(workers, (("a", "1"), ("a", "2"), ("b", "1")), strict=True):
        worker.executor, worker.host = who, f"host-{who[1]}"
    samples = Captured({7: Recording()}, workers, executors=executors).of(7, "a", 0, 10, interval_ms=20.0)
    assert [(each.role, each.executor, each.host) for each in samples.processes] == [
        ("driver", "driver", ""),
        ("executor", "1", "host-1"),
        ("executor", "2", "host-2"),
        ("python_worker", "1", "host-1"),
        ("python_worker", "2", "host-2"),
    ]


def test_samples_by_the_wall_clock_count_only_where_there_are_no_others() -> None:
    """An executor takes both where its Java can, since that is not known before."""
    by_wall, by_cpu = java(1, RUN), java(2, RUN, event="jdk.CPUTimeSample")
    both, one = (
        Captured({1: Recording(each)}).of(1, None, 0, 10, interval_ms=20.0) for each in ([by_wall, by_cpu], [by_wall])
    )
    assert [each.at_ms for each in both.samples] == [2]
    assert [each.at_ms for each in one.samples] == [1]


def test_each_executor_has_a_folder(tmp_path: Path) -> None:
    """One has ended, another was killed, and a third ends meanwhile: its recording takes the place of what it had."""
    folder = tmp_path / "stacks"
    make_folders(folder, mode=0o770)
    assert {each.stat().st_mode & 0o777 for each in (folder, *folder.iterdir())} == {0o770}
    ended, killed = (folder / "executors" / f"app-1-{number}" for number in (1, 2))
    (killed / "2026_11_26_02_30_01_1").mkdir(parents=True)
    ended.mkdir()
    (ended / "hotspot-pid-1-id-1-2026_11_26_02_22_15.jfr").write_bytes(recorded("java-17"))
    chunk = killed / "2026_11_26_02_30_01_1" / "chunk.jfr"
    chunk.write_bytes(recorded("java-17-killed"))
    os.utime(chunk, (1, 1))
    found = read_folder(folder, patience=60)
    assert [(pid, len(each.samples)) for pid, each in found.executors] == [(1, 196), (1, 143)]


def test_an_executor_that_writes_is_waited_for(tmp_path: Path) -> None:
    """As long as there is patience."""
    running = tmp_path / "stacks" / "executors" / "app-1-1" / "2026_11_26_02_30_01_1"
    running.mkdir(parents=True)
    (running / "chunk.jfr").write_bytes(recorded("java-17-killed"))
    began = time.monotonic()
    assert len(read_folder(tmp_path / "stacks", patience=0.3).executors) == 1
    assert time.monotonic() - began > 0.3


def test_native_methods_are_of_tasks() -> None:
    """All other threads wait in one, for connections."""
    event = "jdk.NativeMethodSample"
    recording = Recording([java(1, OTHER, event=event), java(2, RUN, OTHER, event=event), java(3, OTHER)])
    samples = Captured({1: recording}).of(1, None, 0, 10, interval_ms=20.0)
    assert [(each.at_ms, each.state) for each in samples.samples] == [(2, "native"), (3, "running")]


def test_threads_of_tasks_have_the_times_between_their_pauses() -> None:
    """From their start on; other threads, and other waits, tell nothing of tasks."""
    pool = JavaFrame("java.util.concurrent.ThreadPoolExecutor", "getTask", 1)
    pause = JavaSample(7, PARK, 31, (pool,), is_complete=True, began_ms=7.04, duration_ms=2.0)
    others = [replace(pause, frames=(RUN,)), replace(pause, thread=9)]
    recording = Recording([java(5, RUN), java(12, RUN)], waits=[*others, pause], threads={31: 1.26, 9: 1.0})
    found = Captured({1: recording}).of(1, None, 0, 100, interval_ms=20.0)
    assert found.spans == [Span(0, 31, 1.3, 7.0), Span(0, 31, 9.0, None)]
    without_start = Captured({1: replace(recording, threads={})}).of(1, None, 0, 100, interval_ms=20.0)
    assert without_start.spans == [Span(0, 31, 9.0, None)]


def test_waits_of_tasks_are_samples_of_their_length() -> None:
    """At a lock, or for another thread; those of threads without a task always are."""
    lock = JavaFrame("java.util.concurrent.locks.ReentrantLock", "lock", 1)

    def wait(event: str, *frames: JavaFrame) -> JavaSample:
        return replace(java(5, *frames, event=event), duration_ms=50.0)

    waits = [wait(MONITOR, RUN, WORK), wait(PARK, RUN, lock), wait(PARK, RUN, WORK), wait(MONITOR, WORK)]
    found = Captured({1: Recording(waits=waits)}).of(1, None, 0, 100, interval_ms=20.0)
    assert [(each.state, each.weight) for each in found.samples] == [("locked", 2.5), ("locked", 2.5), ("waiting", 2.5)]


def test_each_session_of_a_program_has_its_own_samples() -> None:
    """By time; a worker without any in a session is not there."""
    found = Captured({1: Recording([java(5, RUN), java(15, RUN)])}, [python(8, 1, 5, 6)])
    first, second = (found.of(1, None, begin, begin + 10, interval_ms=20.0) for begin in (0, 10))
    assert [each.at_ms for each in first.samples] == [5, 5, 6]
    assert [each.at_ms for each in second.samples] == [15]
    assert len(second.processes) == 1


def test_a_killed_jvm_is_read_from_its_repository(tmp_path: Path) -> None:
    """One that has ended, from what it left; a damaged recording is named."""
    java_files, repository, none = tmp_path / "java", tmp_path / "repository", tmp_path / "python"
    for folder in (java_files, repository / "2026_11_26_02_30_01_77", none):
        folder.mkdir(parents=True)
    (java_files / "hotspot-pid-5-id-1-2026_11_26_02_22_15.jfr").write_bytes(recorded("java-17"))
    (java_files / "hotspot-pid-6-id-1-2026_11_26_02_22_15.jfr").write_bytes(b"damaged" * 100)
    (java_files / "hotspot-pid-77-id-1-2026_11_26_02_22_15.jfr").write_bytes(b"")
    (repository / "2026_11_26_02_30_01_77" / "chunk.jfr").write_bytes(recorded("java-17-killed"))
    found = read(java_files, repository, none)
    assert {pid: len(each.samples) for pid, each in found.java.items()} == {5: 196, 6: 0, 77: 143}
    assert [each.partition(":")[0] for each in found.unread] == ["process 6"]
