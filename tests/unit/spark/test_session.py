import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.errors import MachineError
from spark_app.settings import PROJECT, Settings, config_folder, load_settings
from spark_app.spark.session import start
from tests.integration.processes import children_of, is_alive
from tests.polling import patience, poll_until

LOOK_AROUND = """
import json, sys
from pathlib import Path
from pyspark import SparkContext
from pyspark.errors import PySparkException
from spark_app.spark.session import start, stop
from spark_app.settings import load_settings

def options(spark):
    management = spark._jvm.java.lang.management.ManagementFactory
    return list(management.getRuntimeMXBean().getInputArguments())

home = Path(sys.argv[1])
settings = load_settings().model_copy(update={"home": home})
spark = start(settings, name="look around", log_file=home / "logs" / "spark.log")
context = spark.sparkContext
spark.range(3).write.format("delta").save(f"{home}/table")
spark.sql(f"CREATE TABLE delta.`{home}/another` (id long) USING delta")
context.setLocalProperty("mdc.trace_id", "4bf92f3577b34da6a3ce929d0e0e4736")
for wrong in ("SELECT raise_error('on purpose')", "SELECT sum(rand()) FROM range(1)", "SELECT nothing FROM range(1)"):
    try:
        spark.sql(wrong).collect()
    except PySparkException:
        pass
try:
    spark.range(1).selectExpr("id", "no_such_column + 1").collect()
except PySparkException:
    pass
results = {
    "rows": spark.read.format("delta").load(f"{home}/table").count(),
    "python": spark.sql("SELECT 1").rdd.map(lambda _: __import__("sys").executable).first(),
    "properties": dict(context.getConf().getAll()),
    "zone": spark.sql("SELECT current_timezone()").first()[0],
}
process = SparkContext._gateway.proc
results["first options"] = options(spark)
stop(spark)
if process:
    results["java ended with"] = process.poll()
    own = "-XX:Tier4InvocationThreshold=7777"
    other = {"spark.eventLog.dir": str(home / "other events"), "spark.driver.extraJavaOptions": own}
    other |= {"spark.driver.defaultJavaOptions": "-XX:+UseSerialGC"}
    spark = start(settings, name="again", log_file=home / "logs" / "again.log", extra=other)
    results["second"] = spark.range(5).count()
    results["options"] = options(spark)
    stop(spark)
(home / "results.json").write_text(json.dumps(results))
"""
WORK_FOREVER = """
import sys
from pathlib import Path
from pyspark import SparkContext
from spark_app.spark.session import start, stop
from spark_app.settings import load_settings

home = Path(sys.argv[1])
settings = load_settings().model_copy(update={"home": home})
spark = start(settings, name="forever", log_file=home / "spark.log")
try:
    print(SparkContext._gateway.proc.pid, flush=True)
    spark.range(10**15).selectExpr("rand() r").selectExpr("sum(r)").collect()
except KeyboardInterrupt:
    print("interrupted", flush=True)
finally:
    stop(spark)
"""
FAIL_BEFORE_A_SESSION = """
import sys
from pathlib import Path
from spark_app.spark.session import StartingJvm
from spark_app.settings import load_settings

with StartingJvm(load_settings().model_copy(update={"home": Path(sys.argv[1])})):
    raise ValueError("a command that is wrong")
"""
FAIL_THRICE = """
import sys
from pathlib import Path
from spark_app.errors import MachineError
from spark_app.spark.session import start, stop
from spark_app.settings import load_settings

home = Path(sys.argv[1])
settings = load_settings().model_copy(update={"home": home})
refused = {"spark.driver.memory": "9999999999g", "spark.master": "nonsense", "spark.scheduler.mode": "NONSENSE"}
for warehouse in ("s3a://bucket/w", "gs://bucket/w", "abfss://box@account.dfs.core.windows.net/w"):
    try:
        start(settings.model_copy(update={"warehouse": warehouse}), name="fail", log_file=home / "spark.log")
    except MachineError as error:
        print(error)
for extra in [*({key: value} for key, value in refused.items()), {}]:
    try:
        spark = start(settings, name="fail", log_file=home / "spark.log", extra=extra)
    except MachineError as error:
        print(error)
print(spark.range(4).count())
stop(spark)
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with an empty home."""
    return load_settings().model_copy(update={"home": tmp_path})


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process with sessions of its own saw, said and left behind."""
    home = tmp_path_factory.mktemp("a home")
    here = tmp_path_factory.mktemp("here")
    usual = {name: value for name, value in environment().items() if name != "SPARK_SUBMIT_OPTS"}
    done = subprocess.run(python(LOOK_AROUND, home), cwd=here, env=usual, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    left_here = [path.name for path in here.iterdir()]
    results: dict[str, Any] = json.loads((home / "results.json").read_text())
    return results | {"home": home, "said": done.stdout + done.stderr, "here": left_here}


def python(code: str, *arguments: object) -> list[str]:
    """The command that runs some code in a process of its own."""
    return [sys.executable, "-c", code, *map(str, arguments)]


def environment() -> dict[str, str]:
    """Ours, with the project importable and another time zone."""
    return {**os.environ, "PYTHONPATH": str(PROJECT), "TZ": "America/New_York"}


def json_lines(log: Path) -> list[dict[str, Any]]:
    """The lines of log4j in a log file."""
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def test_nothing_of_sparks_noise_is_on_the_terminal(seen: dict[str, Any]) -> None:
    """Not Java's warnings, not the log, not the progress bar, not even of a failed task."""
    assert seen["said"] == ""


def test_the_log_file_holds_the_noise_with_trace_ids(seen: dict[str, Any]) -> None:
    """What Java says is in it, and log4j's lines are JSON with the mdc.* properties of the task that spoke."""
    log = seen["home"] / "logs" / "spark.log"
    assert "incubator modules" in log.read_text()
    failed = next(line for line in json_lines(log) if "Exception in task" in line["msg"])
    assert failed["level"] == "ERROR"
    assert failed["context"]["mdc.trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"


def test_delta_tables_can_be_written_and_read(seen: dict[str, Any]) -> None:
    """The jars lie beside Spark's own, and the properties file names the extension and the catalogue."""
    assert seen["rows"] == 3


def test_python_workers_are_this_python(seen: dict[str, Any]) -> None:
    """Another Python on the PATH has other packages."""
    assert seen["python"] == sys.executable


def test_the_time_zone_is_utc_everywhere(seen: dict[str, Any]) -> None:
    """A day must not depend on where the machine stands."""
    assert seen["zone"] == "UTC"


def test_an_embedded_session_is_closed_to_the_network(seen: dict[str, Any]) -> None:
    """A local master of our own needs no address but the loopback."""
    properties = seen["properties"]
    assert properties["spark.master"] == "local[*]"
    assert {properties["spark.driver.host"], properties["spark.driver.bindAddress"]} == {"127.0.0.1"}
    assert properties["spark.app.name"] == "look around"


def test_event_logs_are_kept_uncompressed_in_one_folder(seen: dict[str, Any]) -> None:
    """They can be read while they grow; the folder is made, and a given one wins over that of the settings."""
    for folder in ("spark-events", "other events"):
        (log,) = (seen["home"] / folder).glob("eventlog_v2_*/events_*")
        assert json.loads(log.read_text().splitlines()[0])["Event"] == "SparkListenerLogStart"
    assert seen["properties"]["spark.eventLog.dir"] == (seen["home"] / "spark-events").as_uri()


def test_stop_ends_java_and_another_session_can_be_started(seen: dict[str, Any]) -> None:
    """A JVM that ended by itself, since 0 is its exit code; the next session has one of its own."""
    assert seen["java ended with"] == 0
    assert seen["second"] == 5


def test_java_options_of_the_configuration_win(seen: dict[str, Any]) -> None:
    """They come after ours: Java takes the last of two."""
    of_threshold = [option for option in seen["options"] if option.startswith("-XX:Tier4InvocationThreshold=")]
    assert (len(of_threshold), of_threshold[-1]) == (2, "-XX:Tier4InvocationThreshold=7777")


def test_java_has_the_parallel_collector_unless_the_user_has_chosen(seen: dict[str, Any], spark: SparkSession) -> None:
    """Java does not start with two: one is chosen by a property here, and by `SPARK_SUBMIT_OPTS` in all other tests."""
    jvm: Any = spark._jvm
    own = list(jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
    chosen = {"first options": "-XX:+UseParallelGC", "options": "-XX:+UseSerialGC"}
    for options, collector in (*((seen[name], each) for name, each in chosen.items()), (own, "-XX:+UseSerialGC")):
        assert [option for option in options if option.endswith("GC")] == [collector]


def test_nothing_is_left_in_the_working_directory(seen: dict[str, Any]) -> None:
    """No spark-warehouse, no derby.log, no crash report."""
    assert seen["here"] == []


def test_spark_submit_gives_the_same_session(tmp_path: Path) -> None:
    """With our properties file: Delta, time zone, the log in our file, and only Java's own warning on the terminal."""
    (tmp_path / "job.py").write_text(LOOK_AROUND)
    submit = Path(sys.executable).parent / "spark-submit"
    properties = config_folder() / "spark" / "spark-defaults.conf"
    command: list[str | Path] = [submit, "--master", "local[1]", "--properties-file", properties]
    command += [tmp_path / "job.py", tmp_path]
    path = f"{submit.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=PROJECT, env=environment() | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert (results["rows"], results["zone"], results["properties"]["spark.master"]) == (3, "UTC", "local[1]")
    assert results["properties"]["spark.eventLog.dir"] == (tmp_path / "spark-events").as_uri()
    assert (done.stdout, done.stderr.splitlines()) == ("", ["WARNING: Using incubator modules: jdk.incubator.vector"])
    failed = next(line for line in json_lines(tmp_path / "logs" / "spark.log") if "Exception in task" in line["msg"])
    assert failed["context"]["mdc.trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_java_ends_with_its_python(tmp_path: Path, sent: signal.Signals) -> None:
    """Ctrl-C in the middle of a job ends both in order; killed Python takes Java along, too."""
    with subprocess.Popen(
        python(WORK_FOREVER, tmp_path), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        java = int(process.stdout.readline())
        poll_until(lambda: has_started_a_job(tmp_path / "spark-events"), "no job was started")
        process.send_signal(sent)
        said, complained = process.communicate(timeout=patience(180))
    poll_until(lambda: not is_alive(java), f"Java {java} lives on")
    if sent == signal.SIGINT:
        assert (said, complained, process.returncode) == ("interrupted\n", "", 0)


@pytest.mark.parametrize(("command", "sent"), [("streaming", signal.SIGTERM), ("etl --date 2024-01-01", signal.SIGHUP)])
def test_java_that_is_not_up_yet_ends_with_its_command(tmp_path: Path, command: str, sent: signal.Signals) -> None:
    """A signal that comes before the JVM has told its port ends both; that JVM would run for good."""
    arguments, variables = [sys.executable, "-m", "spark_app", *command.split()], {"SPARK_APP_HOME": str(tmp_path)}
    with subprocess.Popen(arguments, env=environment() | variables, stderr=subprocess.PIPE, text=True) as process:
        poll_until(lambda: java_of(process) is not None or process.poll() is not None, "a JVM", pause=0.01)
        java = java_of(process)
        process.send_signal(sent)
        _, said = process.communicate(timeout=180)
    assert (process.returncode, said.splitlines()[-1][:12]) == (130, "Interrupted.")
    assert java is not None
    poll_until(lambda: not is_alive(java), f"the end of Java {java}")


def java_of(process: subprocess.Popen[str]) -> int | None:
    """The JVM of a command; None before Java has taken the place of the script that starts it."""
    for child in children_of(process.pid):
        with suppress(OSError):  # it has ended
            program, *arguments = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if program.endswith(b"/java") and b"org.apache.spark.deploy.SparkSubmit" in arguments:
                return child
    return None


def test_java_that_no_session_takes_ends(tmp_path: Path) -> None:
    """A command that turns out to be wrong ends as it would have, and leaves neither Java nor a log."""
    command = python(FAIL_BEFORE_A_SESSION, tmp_path)
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr.splitlines()[-1]) == ("", "ValueError: a command that is wrong")
    assert done.returncode == 1
    assert not subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, check=False).stdout
    assert list(tmp_path.glob("logs/*")) == []


def has_started_a_job(events: Path) -> bool:
    """Whether an event log has a job."""
    return any("SparkListenerJobStart" in log.read_text() for log in events.glob("*/events_*"))


def test_what_hinders_java_or_spark_is_told_in_one_line(tmp_path: Path) -> None:
    """What Java, Spark's start or Spark itself said last, and where more is; afterwards a session can be started."""
    done = subprocess.run(python(FAIL_THRICE, tmp_path), env=environment(), capture_output=True, text=True, check=False)
    log = tmp_path / "spark.log"
    no_jars, google, azure, java, submit, context, rows = done.stdout.splitlines()
    assert no_jars.startswith("s3a://bucket/w needs the jars of S3")
    assert "-m spark_app.spark.jars s3` " in no_jars
    assert google.startswith("gs://bucket/w needs a jar that this Spark does not have: add `spark.jars.packages ")
    assert "org.apache.hadoop:hadoop-gcp:3." in google
    assert "org.apache.hadoop:hadoop-azure:3." in azure
    assert java.startswith("Java did not start Spark: Error occurred during initialization of VM | Could not reserve")
    assert submit.startswith("Java did not start Spark: Exception in thread")
    assert "Master must either be yarn or start with" in submit
    assert context.startswith("Spark did not start: ")
    assert "NONSENSE" in context
    assert all(line.endswith(f"; see {log}") for line in (java, submit, context))
    assert (rows, done.stderr, done.returncode) == ("4", "", 0)


def test_a_folder_of_event_logs_that_cannot_be_made_is_named(settings: Settings) -> None:
    """It is found out before Java is started."""
    (settings.home / "file").write_text("")
    extra = {"spark.eventLog.dir": str(settings.home / "file" / "events")}
    with pytest.raises(MachineError, match=rf"^cannot create folder {settings.home}/file/events: Not a directory$"):
        start(settings, name="x", log_file=settings.home / "spark.log", extra=extra)
