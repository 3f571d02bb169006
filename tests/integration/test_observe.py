"""Programs that know nothing of spark-app, run by `spark-app observe` as a user runs them; some end badly."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import pytest

from spark_app.eventlog import reader, spans
from spark_app.eventlog.comparison import baselines
from spark_app.eventlog.model import work_names
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.spans import SparkSpan
from spark_app.report import index
from spark_app.spark.java_runtime import spark_home
from spark_app.vocabulary.spark_names import APPLICATION_SPAN
from tests.polling import lets_end, patience, poll_until
from tests.receivers import Receiver, receiver

EXAMPLES: Final = spark_home() / "examples" / "src" / "main" / "python"
HOLD: Final = Path(__file__).parents[1] / "stranger" / "hold.py"
# The Spark defaults of a user; they make sorts spill after each row.
DEFAULTS: Final = """
spark.master=local[2]
spark.driver.host           127.0.0.1
spark.driver.bindAddress    127.0.0.1
spark.ui.port               0
spark.ui.showConsoleProgress false
spark.default.parallelism   2
spark.sql.shuffle.partitions 2
spark.shuffle.spill.numElementsForceSpillThreshold 1
"""
# The program, with patience for a receiver that is slow in the busy process of the tests.
PATIENT: Final = """
from spark_app import __main__
from spark_app.observe import analysis
from spark_app.eventlog.bridge import one_shot

analysis.SENDING_SECONDS = one_shot.STALLED_SECONDS = 60.0
__main__.main()
"""
LINKS: Final = "1 2\n1 3\n2 3\n3 1\n4 1\n"


@dataclass(frozen=True)
class Home:
    """The folder of a user: Spark configuration, programs, and what was observed."""

    folder: Path

    def started(
        self, *command: str, stderr: Path, options: Sequence[str] = (), **variables: str
    ) -> subprocess.Popen[bytes]:
        """Starts a command under `spark-app observe` with some options."""
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
                [sys.executable, "-c", PATIENT, "observe", "--keep", str(self.events), *options, "--", *command],
                cwd=self.folder,
                env=os.environ | variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    @property
    def events(self) -> Path:
        """The folder of event logs, with a space in its name."""
        return self.folder / "event logs"

    def applications(self) -> dict[str, Application]:
        """The applications of the event logs by name."""
        found = [reader.read(log).app for log in self.events.iterdir()]
        return {app.name or "": app for app in found}


@dataclass(frozen=True)
class Strange:
    """Two examples of PySpark after they were observed: from Spark's REST API, and from the event logs."""

    rest: Mapping[str, Any]
    apps: Mapping[str, Application]
    stdout: str
    stderr: str
    home: Home


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Strange:
    """RDDs with a shuffle and a join, then pandas UDFs, groups and cogroups; each waits at its end for the REST API."""
    home, rest = Home(tmp_path_factory.mktemp("strange")), {}
    (home.folder / "links").write_text(LINKS, encoding="utf-8")
    errors = home.folder / "stderr"
    pagerank, arrow = (str(EXAMPLES / name) for name in ("pagerank.py", "sql/arrow.py"))
    command = [sys.executable, str(HOLD), pagerank, "links", "1", "+", arrow]
    with home.started(*command, stderr=errors) as process:
        for addresses in (1, 2):
            wait_until_held(errors, addresses, process)
            application = asked(held(errors)[-1])
            rest[application["name"]] = application
            let_go(process.stdin)
        stdout = process.stdout.read().decode() if process.stdout else ""
        assert process.wait(300) == 0, errors.read_text(encoding="utf-8")
    return Strange(rest, home.applications(), stdout, errors.read_text(encoding="utf-8"), home)


def held(errors: Path) -> list[str]:
    """The addresses that the programs have printed which are held at their ends."""
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
    application: dict[str, Any] = {}

    def is_complete() -> bool:
        application.update(got(address) | {"jobs": got(f"{address}/jobs"), "stages": got(f"{address}/stages")})
        return all(job["status"] != "RUNNING" for job in application["jobs"])

    poll_until(is_complete, lambda: application)
    return application


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
def test_jobs_equal_those_of_the_rest_api(strange: Strange, name: str) -> None:
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
def test_stage_attempts_equal_those_of_the_rest_api(strange: Strange, name: str) -> None:
    """Each attempt has the same tasks, ended and failed, and the same rows, bytes, spill and times."""
    app = strange.apps[name]
    read = {
        key: [stage.info.tasks, len(stage.durations_ms), stage.failed, stage.killed]
        + [getattr(stage.totals, ours) for ours in FIGURES.values()]
        for key, stage in app.stages.items()
    }
    expected = {
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
    assert read == expected


def test_the_compared_numbers_are_not_all_zero(strange: Strange) -> None:
    """The examples read, shuffle and spill."""
    stages = [stage for app in strange.rest.values() for stage in app["stages"]]
    figures = ("executorRunTime", "inputRecords", "inputBytes", "shuffleReadBytes", "shuffleWriteRecords")
    assert [figure for figure in (*figures, "memoryBytesSpilled") if not sum(stage[figure] for stage in stages)] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_span_has_its_parent(strange: Strange, name: str) -> None:
    """The application is the only root, ids are unique, and there is a span for all that ran."""
    app = strange.apps[name]
    made = list(all_spans(app))
    ids = {span.ids.span_id for span in made}
    assert len(ids) == len(made)
    assert [span.kind for span in made if span.ids.parent_id is None] == [APPLICATION_SPAN]
    assert [span.name for span in made if span.ids.parent_id not in ids | {None}] == []
    assert len({span.ids.trace_id for span in made}) == 1


def all_spans(app: Application) -> Iterator[SparkSpan]:
    """The spans of a whole application."""
    for group in (app.queries, app.jobs, app.batches, app.stages):
        for ended in group.values():
            yield from spans.of_ended(app, ended)
    yield from spans.of_the_end(app)


def test_only_the_programs_write_to_standard_output(strange: Strange) -> None:
    """The table is on standard error, below Spark's own output."""
    assert strange.stdout.splitlines()[-1] == "" or "|" in strange.stdout.splitlines()[-1]
    assert "has rank" in strange.stdout.splitlines()[0]
    assert "Spark application" not in strange.stdout
    assert "exit code 0" in strange.stderr


def test_both_applications_are_reported(strange: Strange) -> None:
    """A row, findings below the name, and a report for each; no launch is unexplained."""
    lines = strange.stderr.splitlines()
    rows = [line for line in lines if line.startswith(tuple(NAMES)) and line not in NAMES]
    assert [line.split("  ")[0] for line in rows] == NAMES
    assert [" ended " in line for line in rows] == [True, False]
    assert " succeeded " in rows[1]
    assert [line for line in lines if line in NAMES] == NAMES
    assert len(list((strange.home.folder / "home" / "reports").glob("local-*.html"))) == 2
    assert "not observed" not in strange.stderr


def test_the_defaults_of_the_user_apply(strange: Strange) -> None:
    """The applications run with the properties of the original spark-defaults.conf."""
    properties = strange.apps[NAMES[0]].properties
    assert properties["spark.shuffle.spill.numElementsForceSpillThreshold"] == "1"
    assert properties["spark.master"] == "local[2]"


HELD: Final = """
import os, sys, threading, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("held").getOrCreate()
context = spark.sparkContext

def held(number):
    while number and not os.path.exists("go"):
        time.sleep(0.05)
    return number

def hold():
    context.setJobDescription("hold a stage")
    context.parallelize(range(2), 2).map(held).sum()

holding = threading.Thread(target=hold)
holding.start()
tracker = context.statusTracker()
while not any(getattr(tracker.getStageInfo(stage), "numCompletedTasks", 0) for stage in tracker.getActiveStageIds()):
    time.sleep(0.05)
spark.range(3).count()  # Spark flushes its log at the start and the end of a job
holding.join()
sys.exit(3)
"""


def what_runs(process: subprocess.Popen[bytes], errors: Path) -> str:
    """What the live page says runs now, once that is one task of two, the other done; or when the process has ended."""
    poll_until(lambda: errors.exists() and b"\n" in errors.read_bytes(), "the address of the page")
    address = errors.read_text(encoding="utf-8").split()[2]
    section = ""

    def is_shown() -> bool:
        nonlocal section
        section = got(f"{address}live?seen=0")["page"].partition('<section id="now">')[2].partition("</section>")[0]
        return "1 of 2 tasks done, 1 running" in section or process.poll() is not None

    poll_until(is_shown, lambda: section + errors.read_text(encoding="utf-8"), seconds=300)
    return section


def test_a_live_page_shows_the_stage_that_runs(tmp_path: Path) -> None:
    """With its tasks and its line, while the command runs; then exit code and report are as ever."""
    home, errors = Home(tmp_path), tmp_path / "stderr"
    (tmp_path / "held.py").write_text(HELD, encoding="utf-8")
    with (
        home.started(sys.executable, "held.py", stderr=errors, options=["--live"]) as process,
        lets_end(tmp_path / "go"),
    ):
        section = what_runs(process, errors)
        assert "hold a stage, sum at " in section, errors.read_text(encoding="utf-8")
        assert "held.py:" in section
        (tmp_path / "go").touch()
        assert process.wait(300) == 3, errors.read_text(encoding="utf-8")
    (page,) = (tmp_path / "home" / "reports").glob("local-*.html")
    report = page.read_text(encoding="utf-8")
    assert "failed with exit code 3" in report
    assert 'id="now"' not in report


UNSEEN: Final = """
import os, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("unseen").config("spark.ui.enabled", "false").getOrCreate()

def held(number):
    open("held", "w").close()
    while number and not os.path.exists("go"):
        time.sleep(0.05)
    return number

spark.sparkContext.parallelize([1], 1).map(held).sum()
"""


@dataclass(frozen=True)
class Terminated:
    """A program that was ended by SIGTERM while its only job ran."""

    code: int
    stderr: str
    home: Home


@pytest.fixture(scope="module")
def terminated(tmp_path_factory: pytest.TempPathFactory) -> Terminated:
    """As a scheduler does it."""
    home = Home(tmp_path_factory.mktemp("terminated"))
    errors = home.folder / "stderr"
    (home.folder / "unseen.py").write_text(UNSEEN, encoding="utf-8")
    started = home.started(sys.executable, "unseen.py", stderr=errors)
    with started as process, lets_end(home.folder / "go"):  # Spark's Python workers, too
        poll_until(lambda: (home.folder / "held").exists() or process.poll() is not None, "a task that runs")
        process.terminate()
        code = process.wait(300)
    return Terminated(code, errors.read_text(encoding="utf-8"), home)


def test_a_program_that_is_ended_by_sigterm_was_killed(terminated: Terminated) -> None:
    """While a job runs: terminal, reports of now and later, their list and the profile say it."""
    assert terminated.code == 128 + signal.SIGTERM, terminated.stderr
    (row,) = (line for line in terminated.stderr.splitlines() if line.startswith("unseen "))
    assert row.split()[:2] == ["unseen", "killed"]
    home = terminated.home.folder / "home"
    reports, later = home / "reports", home / "later.html"
    outcome = "killed by SIGTERM (exit code 143)"
    (page,) = reports.glob("local-*.html")
    assert f"<title>unseen · {outcome}</title>" in page.read_text(encoding="utf-8")
    assert [(entry.title, entry.outcome) for entry in index.entries(reports)] == [("unseen", outcome)]
    assert outcome in (reports / index.INDEX).read_text(encoding="utf-8")
    (profile,) = (baselines.load(file) for file in reports.glob("records/*/*.json"))
    assert (profile.outcome, profile.exit_code) == ("killed", 143)
    (log,) = terminated.home.events.iterdir()
    again = [sys.executable, "-m", "spark_app", "report", str(log), "--output", str(later)]
    subprocess.run(again, env=os.environ | {"SPARK_APP_HOME": str(home)}, check=True)
    assert f"<title>unseen · {outcome}</title>" in later.read_text(encoding="utf-8")


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
import sys, logging
from pyspark.sql import SparkSession; shop = logging.getLogger("shop"); shop.propagate = False; \
shop.addHandler(logging.NullHandler()); shop.warning("rate of %s, password=%s", "<b>", "hunter2")
spark = SparkSession.builder.getOrCreate()
print(spark.range(3).count(), flush=True)
sys.exit(3)
"""
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
REFUSED: Final = """
from pyspark.sql import SparkSession
SparkSession.builder.appName("refused").getOrCreate()
"""
MIXED: Final = """
PYSPARK_SUBMIT_ARGS="--driver-memory 400m pyspark-shell" python refused.py >/dev/null 2>&1 &
python off.py >/dev/null & python killed.py >/dev/null & python own.py >/dev/null & python -i <cells >/dev/null 2>&1 &
spark-submit --deploy-mode cluster --master spark://127.0.0.1:1 --class Any none.jar &
spark-submit --properties-file own.conf crashed.py
code=$?
wait
exit $code
"""


@dataclass(frozen=True)
class Mixed:
    """Programs that ran at the same time, each with its own fate, after they were observed together."""

    code: int
    stdout: bytes
    stderr: str
    collector: Receiver
    home: Home

    @property
    def outcomes(self) -> list[list[str]]:
        """The names and outcomes in the table of applications."""
        names = ("cells ", "crashed ", "killed ", "own ")
        return sorted(
            line.split()[:2] for line in self.stderr.splitlines() if line.startswith(names) and "rows" in line
        )


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    """An event log disabled, a JVM killed, a log of its own, a shell with two sessions, a cluster, a crash."""
    folder = tmp_path_factory.mktemp("mixed")
    home, errors, own = Home(folder), folder / "stderr", folder / "own"
    own.mkdir()
    programs = {"off.py": OFF, "killed.py": KILLED, "crashed.py": CRASHED, "cells": CELLS, "refused.py": REFUSED}
    for name, text in (programs | {"own.py": OWN.replace("file:own", own.as_uri())}).items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "own.conf").write_text(f"{DEFAULTS}\nspark.app.name crashed", encoding="utf-8")
    with receiver() as collector:
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.http_endpoint}
        with home.started("bash", "-c", MIXED, stderr=errors, **endpoint) as process:
            stdout, _ = process.communicate(timeout=patience(400))
        yield Mixed(process.returncode, stdout, errors.read_text(encoding="utf-8"), collector, home)


def test_exit_code_and_standard_output_are_those_of_the_command(mixed: Mixed) -> None:
    """Byte for byte, whatever its programs do."""
    assert (mixed.code, mixed.stdout) == (3, b"3\n"), mixed.stderr


def test_each_application_has_its_own_outcome(mixed: Mixed) -> None:
    """One whose JVM was killed has no end in its log; of programs at once it is not known whose the exit code is."""
    assert mixed.outcomes == [
        ["cells", "ended"],
        ["cells", "ended"],
        ["crashed", "ended"],
        ["killed", "killed"],
        ["own", "ended"],
    ]


def test_each_action_has_the_line_of_its_program(mixed: Mixed) -> None:
    """Of a script, below `spark-submit`, and of a shell; in the report too."""
    found = {
        name: {work_names.of_query(app, query) for query in app.queries.values()}
        for name, app in mixed.home.applications().items()
    }
    assert found == {
        "cells": {"count at <stdin>:1"},
        "crashed": {"count at crashed.py:5"},
        "killed": {"count at killed.py:5"},
    }
    reports = (mixed.home.folder / "home" / "reports").glob("local-*.html")
    assert any("count at crashed.py:5" in report.read_text(encoding="utf-8") for report in reports)


def test_each_launch_without_an_event_log_is_explained(mixed: Mixed) -> None:
    """One disables its log, another runs on a cluster; of one that Spark refused, what Spark said."""
    unseen = sorted(line for line in mixed.stderr.splitlines() if line.startswith("not observed: "))
    assert [line.partition(": ")[2] for line in unseen] == [
        "a Spark application: deploy mode is cluster: its driver and its event log are on another machine",
        "off: it disables its event log (spark.eventLog.enabled=false)",
        unseen[-1].partition(": ")[2],
    ]
    refused = (
        "not observed: refused: Spark did not start: org.apache.spark.SparkIllegalArgumentException: [INVALID_DRIVER_"
    )
    assert unseen[-1].startswith(refused)


def test_what_the_program_of_a_driver_logs_is_in_its_report(mixed: Mixed) -> None:
    """At its line, without secrets, as text; it and the load of the host travel with the event log."""
    apps = mixed.home.applications()
    (record,) = apps["crashed"].log_records
    assert (record.severity, record.logger, Path(record.file).name, record.line) == ("WARN", "shop", "crashed.py", 3)
    assert record.message == "rate of <b>, password=(redacted)"
    assert not apps["killed"].log_records
    load = apps["crashed"].host_load
    assert load is not None
    assert load.samples
    reports = [
        file.read_text(encoding="utf-8") for file in (mixed.home.folder / "home" / "reports").glob("local-*.html")
    ]
    (report,) = [report for report in reports if "rate of &lt;b&gt;, password=(redacted)" in report]
    assert "crashed.py:3" in report
    assert not any("hunter2" in report for report in reports)


def test_each_span_of_finished_applications_is_exported_once(mixed: Mixed) -> None:
    """Also of the application with an event log of its own; every parent is there."""
    spans = mixed.collector.spans
    roots = sorted(span.name for span in spans if not span.parent_span_id)
    assert roots == [f"application {name}" for name in ("cells", "cells", "crashed", "killed", "own")]
    ids = [span.span_id for span in spans]
    assert len(ids) == len(set(ids))
    assert [span.name for span in spans if span.parent_span_id not in {*ids, b""}] == []


def test_a_session_is_compared_with_an_earlier_one_of_its_name(mixed: Mixed) -> None:
    """Those of a shell have the same name."""
    cells = [log for log in mixed.home.events.iterdir() if reader.read(log).app.name == "cells"]
    assert compared(mixed.home, max(cells, key=lambda log: log.stat().st_mtime)) == ("cells", 1)


def compared(home: Home, log: Path) -> tuple[str, int]:
    """What `spark-app compare` compares an application with: its name, and how many earlier runs."""
    done = subprocess.run(
        [sys.executable, "-m", "spark_app", "compare", str(log), "--json"],
        env=os.environ | {"SPARK_APP_HOME": str(home.folder / "home")},
        check=True,
        capture_output=True,
    )
    comparison = json.loads(done.stdout)["comparison"]
    return comparison["application"], comparison["runs"]
