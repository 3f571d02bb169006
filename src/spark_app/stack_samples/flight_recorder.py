"""Options with which a JVM samples its stacks by Java's Flight Recorder, and nothing else.

They need no file of settings, so that they also hold for a JVM on another host. None of them may be given to a JVM
that lacks the module `jdk.jfr`, or that may not write its folder: it would not start.
"""

from pathlib import Path
from typing import Final

from spark_app.stack_samples import captured
from spark_app.vocabulary.spark_settings import FLIGHT_RECORDING, RECORDER_IS_SILENT

NAME: Final = "spark-app"
MAX_RECORDED: Final = "64m"
"""Disk that the recording of one JVM takes; then its oldest part is dropped."""
MAX_FRAMES: Final = 200
"""Depth of stacks; Java's own limit of 64 cuts off the frame that identifies a task."""
SETTINGS: Final = ("settings=none", "+jdk.JVMInformation#enabled=true", "+jdk.JVMInformation#period=everyChunk")
"""Nothing else is recorded than the arguments of the JVM, which tell an executor."""


def rates(interval_ms: float, *events: str) -> str:
    """Settings for a sample of a thread after each interval, and for events of waiting threads.

    Args:
        interval_ms: The time between two samples.
        events: Which samples. Java from 25 on has those by the time on a processor, also of native code; other JVMs
            ignore a setting for an event that they do not know.
    """
    period = f"{max(1, round(interval_ms))}ms"
    keys = {event: "throttle" if event == captured.BY_CPU else "period" for event in events}
    settings = {event: {"enabled": "true", key: period} for event, key in keys.items()} | captured.OF_THREADS
    return ",".join(f"+{event}#{key}={value}" for event, each in settings.items() for key, value in each.items())


def words_of_start(file: Path, rates: str) -> list[str]:
    """What `JFR.start` of `jcmd` takes, for a JVM that runs already."""
    own = [f"name={NAME}", *SETTINGS, *rates.split(",")]
    return [*own, f"filename={file}", "dumponexit=true", f"maxsize={MAX_RECORDED}"]


def options(folder: str, repository: str, rates: str) -> str:
    """Options of a JVM that records itself.

    Args:
        folder: Where a JVM that ends writes its recording; it exists, or is the repository.
        repository: Where it writes while it runs; Java creates it.
        rates: Which samples, and how many.
    """
    return (
        f"{FLIGHT_RECORDING}{','.join([*SETTINGS, rates])},filename={folder},dumponexit=true,maxsize={MAX_RECORDED} "
        f"-XX:FlightRecorderOptions=stackdepth={MAX_FRAMES},repository={repository} {RECORDER_IS_SILENT}"
    )


def options_of_driver(folder: Path, rates: str) -> str:
    """Options of a driver of this machine, by `captured.read_folder` of that folder."""
    return options(str(folder / captured.JAVA), str(folder / captured.RUNNING), rates)


def options_of_executors(folder: Path, rates: str) -> str:
    """Options of executors that have a folder of this machine, by `captured.read_folder` of that folder."""
    own = str(folder / captured.EXECUTORS / "{{APP_ID}}-{{EXECUTOR_ID}}")
    return options(own, own, rates)


def is_in(java_home: Path) -> bool:
    """Whether a Java has the Flight Recorder."""
    return (java_home / "lib" / "jfr" / "default.jfc").is_file()
