"""The samples of processes become those of an application."""

from pathlib import Path
from typing import Final

from spark_app.stack_samples.captured import TASK, Captured, read
from spark_app.stack_samples.flight_recordings import JavaFrame, JavaSample, Recording
from spark_app.stack_samples.python_stacks import PythonProcess, PythonSample
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


def test_native_methods_are_of_tasks() -> None:
    """All other threads wait in one, for connections."""
    event = "jdk.NativeMethodSample"
    recording = Recording([java(1, OTHER, event=event), java(2, RUN, OTHER, event=event), java(3, OTHER)])
    samples = Captured({1: recording}).of(1, None, 0, 10, interval_ms=20.0)
    assert [(each.at_ms, each.state) for each in samples.samples] == [(2, "native"), (3, "running")]


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
