"""Samples of the stacks of an application of our own: its JVM, its Python, and its workers."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from spark_app.stack_samples.samples import file_of, read

# As a pipeline does it, in a session that `spark-submit` or a notebook may have started.
PROGRAM: Final = """
import sys
from pathlib import Path
from pyspark.sql import functions as F
from spark_app.execution.application import start_application
from spark_app.settings import load_settings
from tests.unit.watching import Watching

listener = Watching()
settings = load_settings().model_copy(update={"home": Path(sys.argv[1])})
with start_application(settings, "sampled", listener=listener) as application:
    def busy(number):
        return sum(range(20_000)) + number

    frame = application.spark.range(0, 20_000, 1, 2).select(F.udf(busy, "long")("id").alias("busy"))
    texts = application.spark.range(0, 700_000, 1, 2).select(F.sha2(F.repeat(F.col("id").cast("string"), 100), 512))
    frame.write.format("noop").mode("overwrite").save()
    texts.write.format("noop").mode("overwrite").save()
    print(application.event_log)
print(listener.notes)
"""


def run(folder: Path, **variables: str) -> tuple[Path, str]:
    """The event log of the program, and what it noted."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)],
        env=os.environ | {"SPARK_APP_CLUSTER": "", "TMPDIR": str(folder)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    log, notes = done.stdout.splitlines()[-2:]
    return Path(log.removeprefix("file://")), notes


def test_driver_jvm_and_workers_are_sampled(tmp_path: Path) -> None:
    """Beside the event log, whose properties are those of any run; nothing else is left."""
    log, notes = run(tmp_path, SPARK_APP_PROFILE="1")
    assert notes == "[]"
    samples = read(file_of(log))
    assert {each.role for each in samples.processes} == {"driver", "python_driver", "python_worker"}
    functions = {(frame.function, frame.language) for frame in samples.frames}
    assert ("busy", "python") in functions
    assert ("org.apache.spark.executor.Executor$TaskRunner.run", "java") in functions
    assert not list(tmp_path.glob("spark-app-*"))
    assert "StartFlightRecording" not in next(log.glob("events_1_*")).read_text(encoding="utf-8")


def test_a_jvm_without_the_flight_recorder_runs_on(tmp_path: Path) -> None:
    """Its Python is sampled; the remark says what is not."""
    modules = "java.se,jdk.unsupported,jdk.management,jdk.security.auth,jdk.incubator.vector"
    log, notes = run(tmp_path, SPARK_APP_PROFILE="1", JDK_JAVA_OPTIONS=f"--limit-modules={modules}")
    assert "the JVM of the driver is not sampled" in notes
    assert {each.role for each in read(file_of(log)).processes} == {"python_driver", "python_worker"}
