"""Samples of the stacks of real jobs: functions whose shares of the time are known, in Python and in the JVM."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.eventlog import reader
from spark_app.stack_samples import task_runs
from spark_app.stack_samples.counts import NO_SAMPLES
from spark_app.stack_samples.samples import Sample, StackSamples, file_of, read
from spark_app.stack_samples.stack_profile import of_log
from spark_app.stack_samples.task_runs import TaskRun
from tests import observing

PROGRAM: Final = """
import sys
import time
from pyspark.sql import SparkSession, functions as F


def spin(turns):
    total = 0
    for index in range(1000, 1000 + turns):  # Python has the numbers up to 256 ready, and adds them faster
        total += index % 7
    return total


def much(number):
    return spin(700) + number


def little(number):
    return spin(300) + number


def both(number):
    return much(number) + little(number)


def for_seconds(batches):
    end = time.monotonic() + {seconds}
    while time.monotonic() < end:
        both(1)
    yield from batches


spark = SparkSession.builder.master("local[2]").appName("split").config("spark.ui.enabled", "false").getOrCreate()
print(spark.range(0, 20_000, 1, 4).select(F.udf(both, "long")("id").alias("all")).agg(F.sum("all")).first()[0])
print(spark.range(0, 2, 1, 2).mapInPandas(for_seconds, "id long").count())
texts = spark.range(0, {texts}, 1, 4).select(F.sha2(F.repeat(F.col("id").cast("string"), 100), 512).alias("text"))
print(texts.filter("text like 'ab%'").count())
sys.exit(3)
"""
SHORT: Final = PROGRAM.format(seconds=0, texts=20_000)
LONG: Final = PROGRAM.format(seconds=24, texts=400_000)
"""Keeps two Python workers busy for so long that three points are three deviations of a share of 70 %.

By the clock, and not by rows: samples come with time, however fast the machine is.
"""
TWO_STAGES: Final = """
import threading
from pyspark.sql import SparkSession, functions as F

builder = SparkSession.builder.master("local[2]").appName("two").config("spark.ui.enabled", "false")
spark = builder.config("spark.scheduler.mode", "FAIR").getOrCreate()


def digest(tasks):
    texts = spark.range(0, tasks * 100_000, 1, tasks).select(F.sha2(F.repeat(F.col("id").cast("string"), 100), 512))
    texts.write.format("noop").mode("overwrite").save()


threads = [threading.Thread(target=digest, args=(tasks,)) for tasks in (42, 18)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
"""Two stages at once, with 70 and 30 % of the work, on threads that take tasks of both."""
WORKER: Final = "python_worker"


@dataclass(frozen=True)
class Run:
    """An observed command, and what it left."""

    code: int
    stdout: str
    stderr: str
    events: Path

    @property
    def log(self) -> Path:
        """Its event log."""
        return next(file for file in self.events.iterdir() if not file.name.endswith(".zst"))

    @property
    def samples(self) -> StackSamples:
        """Its samples."""
        return read(file_of(self.log))

    @property
    def task_runs(self) -> list[TaskRun]:
        """The tasks of its event log."""
        return task_runs.of_log(self.log)


def observed(folder: Path, *options: str, program: str) -> Run:
    """Runs a program."""
    done = observing.observed(folder, program, *options)
    return Run(done.returncode, done.stdout, done.stderr, folder / "events")


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run with samples."""
    return observed(tmp_path_factory.mktemp("sampled"), "--profile", "--profile-hertz", "99", program=LONG)


def weights(samples: StackSamples, role: str) -> Counter[str]:
    """The weight of running samples of processes of a role, by each function on the stack."""
    found: Counter[str] = Counter()
    for each in samples.samples:
        if each.state == "running" and samples.processes[each.process].role == role:
            for function in {samples.frames[index].function for index in samples.stacks[each.stack]}:
                found[function] += each.weight  # type: ignore[assignment] # a weight is a float
    return found


def of_role(samples: StackSamples, role: str) -> list[Sample]:
    """The samples of processes of a role."""
    return [each for each in samples.samples if samples.processes[each.process].role == role]


def test_functions_of_workers_have_their_shares(sampled: Run) -> None:
    """Within three points; each of the samples has a task of the log, and the function its place in the program."""
    samples, ran = sampled.samples, weights(sampled.samples, WORKER)
    assert ran["much"] / (ran["much"] + ran["little"]) == pytest.approx(0.7, abs=0.03)
    tasks = {task for each in task_ends(sampled.log) for task in [each["Task Info"]["Task ID"]]}
    assert {each.task for each in of_role(samples, WORKER)} <= tasks
    own = {(frame.function, frame.file) for frame in samples.frames if frame.is_own and frame.language == "python"}
    assert {("much", "split.py"), ("little", "split.py"), ("<module>", "split.py")} <= own
    assert not any(frame.file.startswith("/") for frame in samples.frames)


def test_threads_of_tasks_of_the_jvm_are_seen(sampled: Run) -> None:
    """The digest is what they do; the processes and their times are those of the log."""
    samples, ran = sampled.samples, weights(sampled.samples, "driver")
    of_tasks = ran["org.apache.spark.executor.Executor$TaskRunner.run"]
    digest = sum(ran[name] for name in ran if name.endswith("GeneratedIteratorForCodegenStage1.processNext"))
    assert of_tasks > 20
    assert digest / of_tasks > 0.5
    assert {each.role: each.executor for each in samples.processes} == {
        "driver": "driver",
        "python_driver": None,
        WORKER: "driver",
    }
    app = reader.read(sampled.log).app
    assert app.started is not None
    assert all(app.started - 60_000 < each.at_ms < app.last + 60_000 for each in samples.samples)


@pytest.mark.before_release
def test_stages_that_run_at_once_on_one_executor_have_their_shares(tmp_path: Path) -> None:
    """Within three points of the CPU time that Spark measured; 95 % of the samples of tasks have a stage.

    Java 17 sees threads unevenly: of these 70 % it saw 59 %, so that its times are scaled; those of Java 25 are not.
    Needs processors that nobody else keeps busy: beside other tests 91 % had a stage.
    """
    run = observed(tmp_path, "--profile", "--profile-hertz", "99", program=TWO_STAGES)
    cpu: Counter[int] = Counter()
    for each in task_ends(run.log):
        cpu[each["Stage ID"]] += each["Task Metrics"]["Executor CPU Time"]
    stacks = of_log(run.log)
    assert stacks is not None
    sampled = {place: part.activities["jvm"] for place, part in stacks.parts.items()}
    known = sum(tally.samples for place, tally in sampled.items() if isinstance(place, tuple))
    unknown = sampled.get("unknown", NO_SAMPLES).samples
    assert known / (known + unknown) >= 0.95
    more, less = (next(stage for stage in cpu if tasks_of(run.log)[stage] == tasks) for tasks in (42, 18))
    share = sampled[more, 0].ms / (sampled[more, 0].ms + sampled[less, 0].ms)
    assert share == pytest.approx(cpu[more] / (cpu[more] + cpu[less]), abs=0.03)
    assert share == pytest.approx(0.7, abs=0.05)


def test_a_job_is_as_without_samples(tmp_path: Path) -> None:
    """Exit code, output and event log; nothing is left beside the log, and no folder of the command."""
    (tmp_path / "sampled").mkdir()
    sampled, plain = observed(tmp_path / "sampled", "--profile", program=SHORT), observed(tmp_path, program=SHORT)
    assert (sampled.code, sampled.stdout) == (plain.code, plain.stdout)
    assert sampled.code == 3
    assert sampled.samples.samples
    assert not list(plain.events.glob("*.zst"))
    assert not list(sampled.events.parent.glob("spark-app-*"))
    assert settings(sampled.log) == settings(plain.log)
    assert "stack" not in plain.stderr


def task_ends(log: Path) -> list[dict[str, Any]]:
    """The ends of tasks in an event log."""
    lines = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return [each for each in lines if each["Event"] == "SparkListenerTaskEnd"]


def tasks_of(log: Path) -> Counter[int]:
    """The number of tasks of each stage."""
    return Counter(each["Stage ID"] for each in task_ends(log))


def settings(log: Path) -> set[str]:
    """The names of the Spark properties of an application."""
    return set(reader.read(log).app.properties)
