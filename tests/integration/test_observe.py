"""Programs that none of us wrote, and some that end badly, each run by `spark-app observe` as a user would."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import pytest

from app.eventlog import reading, spans
from app.eventlog.application import Application
from app.eventlog.spans import SparkSpan
from app.java.runtime import spark_home
from app.telemetry.spark_names import APPLICATION_SPAN
from tests.polling import poll_until
from tests.receivers import receiver

EXAMPLES: Final = spark_home() / "examples" / "src" / "main" / "python"
HOLD: Final = Path(__file__).parents[1] / "stranger" / "hold.py"
# A user's own defaults; with them what is sorted spills after each row.
DEFAULTS: Final = """
spark.master=local[2]
spark.driver.host           127.0.0.1
spark.driver.bindAddress    127.0.0.1
spark.ui.port               0
spark.ui.showConsoleProgress false
spark.default.parallelism   2
spark.sql.shuffle.partitions 2
spark.shuffle.spill.numElementsForceSpillThreshold 1
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""
# The program, but it waits for a receiver that may be slow, as it is in the busy process of the tests.
PATIENT: Final = """
from app import __main__, conclusions
from app.eventlog.bridge import once

conclusions.SENDING_SECONDS = once.STALLED_SECONDS = 60.0
__main__.main()
"""
LINKS: Final = "1 2\n1 3\n2 3\n3 1\n4 1\n"


@dataclass(frozen=True)
class Home:
    """A user's folder: the configuration of his Spark, his files, and what is observed."""

    folder: Path

    def started(self, *command: str, stderr: Path, **variables: str) -> subprocess.Popen[bytes]:
        """A command that is being observed."""
        conf = self.folder / "conf"
        conf.mkdir()
        (conf / "spark-defaults.conf").write_text(DEFAULTS, encoding="utf-8")
        variables |= {
            "SPARK_CONF_DIR": str(conf),
            "SPARK_APP_HOME": str(self.folder / "home"),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        with stderr.open("wb") as errors:
            return subprocess.Popen(
                [sys.executable, "-c", PATIENT, "observe", "--keep", str(self.events), "--", *command],
                cwd=self.folder,
                env=os.environ | variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    @property
    def events(self) -> Path:
        """The folder of event logs; a name with a space must do no harm."""
        return self.folder / "event logs"

    def applications(self) -> dict[str, Application]:
        """What the event logs tell, by the names of the applications."""
        found = [reading.read(log).app for log in self.events.iterdir()]
        return {app.name or "": app for app in found}


@dataclass(frozen=True)
class Strange:
    """Two of PySpark's own examples after they were observed: what Spark's REST API said, and what the logs say."""

    rest: Mapping[str, Any]
    apps: Mapping[str, Application]
    stdout: str
    stderr: str
    home: Home


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Strange:
    """RDDs with a shuffle and a join, then pandas UDFs, groups and cogroups, held at their ends for the REST API."""
    home, rest = Home(tmp_path_factory.mktemp("strange")), {}
    (home.folder / "links").write_text(LINKS, encoding="utf-8")
    errors = home.folder / "stderr"
    pagerank, arrow = (str(EXAMPLES / name) for name in ("pagerank.py", "sql/arrow.py"))
    command = [sys.executable, str(HOLD), pagerank, "links", "1", "+", arrow]
    with home.started(*command, stderr=errors) as process:
        for addresses in (1, 2):
            wait_until_held(errors, addresses, process)
            told = asked(held(errors)[-1])
            rest[told["name"]] = told
            let_go(process.stdin)
        stdout = process.stdout.read().decode() if process.stdout else ""
        assert process.wait(300) == 0, errors.read_text(encoding="utf-8")
    return Strange(rest, home.applications(), stdout, errors.read_text(encoding="utf-8"), home)


def held(errors: Path) -> list[str]:
    """The addresses that the programs have told which are held at their ends."""
    lines = errors.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("held ") for line in lines if line.startswith("held ")]


def wait_until_held(errors: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    """Waits until so many programs have come to their ends."""
    poll_until(
        lambda: len(held(errors)) == count or process.poll() is not None,
        lambda: errors.read_text(encoding="utf-8"),
        seconds=300,
    )


def let_go(stdin: IO[bytes] | None) -> None:
    """Lets a program end that is held."""
    assert stdin is not None
    stdin.write(b"\n")
    stdin.flush()


def asked(address: str) -> dict[str, Any]:
    """What the REST API says of an application, once it has heard of all that is done."""
    told: dict[str, Any] = {}

    def is_told() -> bool:
        told.update(got(address) | {"jobs": got(f"{address}/jobs"), "stages": got(f"{address}/stages")})
        return all(job["status"] != "RUNNING" for job in told["jobs"])

    poll_until(is_told, lambda: told)
    return told


def got(address: str) -> Any:
    """The JSON at an address."""
    with urllib.request.urlopen(address, timeout=60) as answer:
        return json.load(answer)


NAMES: Final = ["PythonPageRank", "Python Arrow-in-Spark example"]
FIGURES: Final = {
    "executorRunTime": "run_ms",
    "executorCpuTime": "cpu_ns",
    "jvmGcTime": "gc_ms",
    "memoryBytesSpilled": "memory_spilled",
    "diskBytesSpilled": "disk_spilled",
    "inputBytes": "input_bytes",
    "inputRecords": "input_records",
    "outputBytes": "output_bytes",
    "outputRecords": "output_records",
    "shuffleReadBytes": "shuffle_read_bytes",
    "shuffleReadRecords": "shuffle_read_records",
    "shuffleWriteBytes": "shuffle_write_bytes",
    "shuffleWriteRecords": "shuffle_write_records",
    "shuffleFetchWaitTime": "shuffle_wait_ms",
}


@pytest.mark.parametrize("name", NAMES)
def test_jobs_are_those_of_the_rest_api(strange: Strange, name: str) -> None:
    """Each job has the same outcome, stages, and number of stages that ran or were skipped."""
    app = strange.apps[name]
    read = {
        job.id: (
            "FAILED" if job.has_failed else "SUCCEEDED",
            sorted(job.stages),
            len(job.ran),
            len(set(job.stages) - {stage for stage, _ in job.ran}),
        )
        for job in app.jobs.values()
    }
    assert read == {
        job["jobId"]: (job["status"], sorted(job["stageIds"]), job["numCompletedStages"], job["numSkippedStages"])
        for job in strange.rest[name]["jobs"]
    }
    assert read


@pytest.mark.parametrize("name", NAMES)
def test_stage_attempts_are_those_of_the_rest_api(strange: Strange, name: str) -> None:
    """Each attempt has the same tasks, ended and failed, and the same rows, bytes, spill and times."""
    app = strange.apps[name]
    read = {
        key: [stage.info.tasks, len(stage.durations_ms), stage.failed, stage.killed]
        + [getattr(stage.totals, ours) for ours in FIGURES.values()]
        for key, stage in app.stages.items()
    }
    told = {
        (stage["stageId"], stage["attemptId"]): [
            stage["numTasks"],
            stage["numCompleteTasks"] + stage["numFailedTasks"] + stage["numKilledTasks"],
            stage["numFailedTasks"],
            stage["numKilledTasks"],
            *(stage[figure] for figure in FIGURES),
        ]
        for stage in strange.rest[name]["stages"]
        if stage["status"] != "SKIPPED"
    }
    assert read == told


def test_there_was_something_to_compare(strange: Strange) -> None:
    """The examples read, shuffle and spill: equal numbers are not all zeros."""
    stages = [stage for app in strange.rest.values() for stage in app["stages"]]
    figures = ("executorRunTime", "inputRecords", "inputBytes", "shuffleReadBytes", "shuffleWriteRecords")
    assert [figure for figure in (*figures, "memoryBytesSpilled") if not sum(stage[figure] for stage in stages)] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_span_has_its_parent(strange: Strange, name: str) -> None:
    """The application is the only root, ids are unique, and there is a span for all that ran."""
    app = strange.apps[name]
    made = list(all_spans(app))
    ids = {span.place.span_id for span in made}
    assert len(ids) == len(made)
    assert [span.kind for span in made if span.place.parent_id is None] == [APPLICATION_SPAN]
    assert [span.name for span in made if span.place.parent_id not in ids | {None}] == []
    assert len({span.place.trace_id for span in made}) == 1


def all_spans(app: Application) -> Iterator[SparkSpan]:
    """The spans of a whole application."""
    for group in (app.queries, app.jobs, app.batches, app.stages):
        for ended in group.values():
            yield from spans.of_ended(app, ended)
    yield from spans.of_the_end(app)


def test_only_the_programs_speak_on_standard_output(strange: Strange) -> None:
    """The table is on standard error, below what Spark says there."""
    assert strange.stdout.splitlines()[-1] == "" or "|" in strange.stdout.splitlines()[-1]
    assert "has rank" in strange.stdout.splitlines()[0]
    assert "Spark application" not in strange.stdout
    assert "exit code 0" in strange.stderr


def test_both_applications_are_told_of(strange: Strange) -> None:
    """A row and a report for each, and its name above what is found in it; nothing is said to be unseen."""
    lines = strange.stderr.splitlines()
    rows = [line for line in lines if line.startswith(tuple(NAMES)) and line not in NAMES]
    assert [line.split("  ")[0] for line in rows] == NAMES
    assert all(" ended " in line for line in rows)
    assert [line for line in lines if line in NAMES] == NAMES
    assert len(list((strange.home.folder / "home" / "reports").glob("local-*.html"))) == 2
    assert "not seen" not in strange.stderr


def test_their_defaults_hold(strange: Strange) -> None:
    """What their spark-defaults.conf says is what their applications run with."""
    properties = strange.apps[NAMES[0]].properties
    assert properties["spark.shuffle.spill.numElementsForceSpillThreshold"] == "1"
    assert properties["spark.master"] == "local[2]"


OFF: Final = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("off").config("spark.eventLog.enabled", "false").getOrCreate()
spark.range(3).count()
"""
KILLED: Final = """
import os, signal
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("killed").getOrCreate()
spark.range(3).count()
os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
os._exit(9)
"""
CRASHED: Final = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print(spark.range(3).count(), flush=True)
sys.exit(3)
"""
TOGETHER: Final = """
python off.py & python killed.py &
spark-submit --properties-file own.conf crashed.py
code=$?
wait
exit $code
"""


def test_several_at_once_and_how_each_ended(tmp_path: Path) -> None:
    """Of three at once each is told as it was: its log off, its JVM killed, its program crashed with its own defaults.

    The exit code and the standard output are the command's, byte for byte.
    """
    home, errors = Home(tmp_path), tmp_path / "stderr"
    for name, text in {"off.py": OFF, "killed.py": KILLED, "crashed.py": CRASHED}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "own.conf").write_text(f"{DEFAULTS}\nspark.app.name crashed", encoding="utf-8")
    with home.started("bash", "-c", TOGETHER, stderr=errors) as process:
        stdout, _ = process.communicate(timeout=300)
    told = errors.read_text(encoding="utf-8")
    assert (process.returncode, stdout) == (3, b"3\n"), told
    rows = {line.split()[0]: line.split()[1] for line in told.splitlines() if line.startswith(("killed ", "crashed "))}
    assert rows == {"killed": "incomplete", "crashed": "ended"}
    assert "not seen: off: it switches its event log off itself (spark.eventLog.enabled=false)" in told
    assert set(home.applications()) == {"killed", "crashed"}


OWN: Final = """
from pyspark.sql import SparkSession
place = "file:own"
spark = SparkSession.builder.appName("own").config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", place)
print(spark.getOrCreate().range(3).count(), flush=True)
"""
CELLS: Final = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("cells").getOrCreate()
spark.no_such_thing
spark.range(3).count()
spark.stop()
spark = SparkSession.builder.appName("cells").getOrCreate()
spark.range(3).count()
"""
SEEN_AND_NOT: Final = """
python own.py &
spark-submit --deploy-mode cluster --master spark://127.0.0.1:1 --class Any none.jar &
python -i <cells
wait
"""


def test_what_was_seen_is_sent_once_and_remembered(tmp_path: Path) -> None:
    """A kernel that runs cells, with two sessions one after the other; a job with an event log of its own; a cluster's.

    The first two are told, each span once; what runs in a cluster is said in a line; the second session has a past.
    """
    home, errors, own = Home(tmp_path), tmp_path / "stderr", tmp_path / "own"
    own.mkdir()
    (tmp_path / "own.py").write_text(OWN.replace("file:own", own.as_uri()), encoding="utf-8")
    (tmp_path / "cells").write_text(CELLS, encoding="utf-8")
    with receiver() as collector:
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.http_endpoint}
        with home.started("bash", "-c", SEEN_AND_NOT, stderr=errors, **endpoint) as process:
            process.communicate(timeout=300)
    told = errors.read_text(encoding="utf-8")
    assert process.returncode == 0, told
    (unseen,) = (line for line in told.splitlines() if line.startswith("not seen: "))
    assert unseen.startswith("not seen: a Spark application: deploy mode cluster: its driver runs elsewhere, and ")
    names = sorted(span.name for span in collector.spans if not span.parent_span_id)
    assert names == ["application cells", "application cells", "application own"]
    ids = [span.span_id for span in collector.spans]
    assert len(ids) == len(set(ids))
    assert [span.name for span in collector.spans if span.parent_span_id not in {*ids, b""}] == []
    assert compared(home, max(home.events.iterdir(), key=lambda log: log.stat().st_mtime)) == ("cells", 1)


def compared(home: Home, log: Path) -> tuple[str, int]:
    """What `spark-app compare` compares an application with: its name, and how many earlier runs."""
    told = subprocess.run(
        [sys.executable, "-m", "app", "compare", str(log), "--json"],
        env=os.environ | {"SPARK_APP_HOME": str(home.folder / "home")},
        check=True,
        capture_output=True,
    )
    comparison = json.loads(told.stdout)["comparison"]
    return comparison["application"], comparison["runs"]
