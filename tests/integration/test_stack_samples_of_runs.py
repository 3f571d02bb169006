"""Samples of the stacks of an application of our own: its JVM, its Python, and its workers."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

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

    frame = application.spark.range(0, 6_000, 1, 2).select(F.udf(busy, "long")("id").alias("busy"))
    texts = application.spark.range(0, 300_000, 1, 2).select(F.sha2(F.repeat(F.col("id").cast("string"), 100), 512))
    frame.write.format("noop").mode("overwrite").save()
    texts.write.format("noop").mode("overwrite").save()
    print(application.event_log)
print(listener.notes)
"""
# Two runs one after the other, and two more at the same time; each keeps Python and JVM of the driver at work.
RUNS: Final = """
import sys
import threading
import time
from pathlib import Path
from spark_app.engine.context import Context
from spark_app.execution.application import start_application
from spark_app.execution.run import recorded_run
from spark_app.settings import load_settings
from tests.unit.watching import Watching

settings = load_settings().model_copy(update={"home": Path(sys.argv[1])})


def of_first(until):
    while time.thread_time() < until:
        sum(range(20_000))


def of_second(until):
    while time.thread_time() < until:
        max(range(20_000))


def work(application, name, function, meet):
    text = "SELECT " + ", ".join(f"a{number} + {number}" for number in range(500))
    with recorded_run(application, name, None, Context) as context:
        meet()
        with context.step("digest", kind="write"):
            texts = application.spark.range(0, 300_000, 1, 2).selectExpr("sha2(repeat(string(id), 100), 512)")
            texts.write.format("noop").mode("overwrite").save()
        until = time.monotonic() + 3
        while time.monotonic() < until:
            application.spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
        function(time.thread_time() + 1.5)
        meet()


with start_application(settings, "runs", listener=Watching()) as application:
    for name, function in (("first", of_first), ("second", of_second)):
        work(application, f"etl.{name}", function, lambda: None)
    barrier = threading.Barrier(2)
    together = [
        threading.Thread(target=work, args=(application, f"etl.{name}", function, barrier.wait))
        for name, function in (("third", of_first), ("fourth", of_second))
    ]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
print(*(result.run_id for result in application.results))
"""


def printed(program: str, folder: Path, **variables: str) -> list[str]:
    """The lines that a program prints, which gets a folder."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        env=os.environ | {"SPARK_APP_CLUSTER": "", "TMPDIR": str(folder)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def run(folder: Path, **variables: str) -> tuple[Path, str]:
    """The event log of the program, and what it noted."""
    log, notes = printed(PROGRAM, folder, **variables)[-2:]
    return Path(log.removeprefix("file://")), notes


def reported(folder: Path, run_id: str) -> tuple[dict[str, dict[str, Any]], str]:
    """The samples in the report of a run, by their place, and the stacks of the driver."""
    profiles = folder / f"profiles-{run_id}"
    command = [sys.executable, "-m", "spark_app", "report", run_id, "--json", "--profile-out", str(profiles)]
    environment = os.environ | {"SPARK_APP_HOME": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    (application,) = json.loads(done.stdout)["applications"]
    file = profiles / "driver.collapsed"
    stacks = file.read_text(encoding="utf-8") if file.exists() else ""
    return {each["place"]: each for each in application["stack_samples"]["places"]}, stacks


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


def test_the_report_of_a_run_has_the_driver_of_its_time(tmp_path: Path) -> None:
    """Its Python, which the other run has none of; of runs at the same time, nothing is said of the driver."""
    ids = {run_id.split("-")[1]: run_id for run_id in printed(RUNS, tmp_path, SPARK_APP_PROFILE="1")[-1].split()}
    assert set(ids) == {"etl.first", "etl.second", "etl.third", "etl.fourth"}
    for name, other in (("first", "second"), ("second", "first")):
        places, stacks = reported(tmp_path, ids[f"etl.{name}"])
        assert places["driver"]["python_ratio"]
        assert re.search("^JVM;", stacks, re.MULTILINE)
        assert f";of_{name} " in stacks
        assert [line for line in stacks.splitlines() if f";of_{other}" in line] == []
    for name in ("third", "fourth"):
        places, stacks = reported(tmp_path, ids[f"etl.{name}"])
        assert any(each["stage"] for each in places.values())
        assert ("driver" in places, stacks) == (False, "")
