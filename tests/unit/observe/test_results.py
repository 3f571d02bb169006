import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from spark_app.eventlog.bridge.one_shot import LogExport
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.reader import read
from spark_app.observe.event_log_injection import LAUNCH, EventLogInjection, Launch
from spark_app.observe.results import LaunchWatcher, ObservedApplications
from spark_app.spark import connect_sessions
from spark_app.telemetry.errors import TelemetryErrors
from tests.polling import poll_until
from tests.receivers import receiver

HELP: Final = "`spark-app report` on that log shows its operations"
CONNECT_EVENT: Final = "org.apache.spark.sql.connect.service.SparkListenerConnect"
SUBMIT: Final = "org.apache.spark.deploy.SparkSubmit"
CLOSING: Final = """
import os, sys
print("ready", flush=True)
sys.stdin.readline()
os.rename(sys.argv[2], sys.argv[2].removesuffix(".inprogress"))
"""
"""Stands for a JVM that outlives its program a little: it has the option of one, and then closes its event log."""


class Command:
    """A command that ran, as far as it left notes and logs."""

    def __init__(self, folder: Path) -> None:
        (folder / "events").mkdir()
        (folder / "scratch").mkdir()
        self.folder = folder
        self.switch = EventLogInjection(folder / "events", folder / "scratch")
        self.switch.variables({})
        self.watch = LaunchWatcher(self.switch)

    def launch(self, *arguments: str, mode: str = "client", number: int = 1) -> Launch:
        """Notes a launch as our `spark-env.sh` does."""
        words = [mode, str(self.folder), SUBMIT, *arguments]
        note = self.folder / "scratch" / "launches" / str(number)
        note.write_text("".join(f"{word}\0" for word in words), encoding="utf-8")
        (launch,) = (launch for launch in self.switch.launches() if launch.id.endswith(f"-{number}"))
        return launch

    def log(
        self,
        launch: str,
        *,
        folder: str = "events",
        name: str = "local-1",
        began: int = 1000,
        ended: int | None = None,
        submitted: int = 0,
    ) -> None:
        """Writes the event log of an application that belongs to a launch, whose process started at some time."""
        properties = {LAUNCH: launch, "spark.app.submitTime": str(submitted or began - 100)}
        events = [
            {"Event": "SparkListenerLogStart", "Spark Version": "4.2.0"},
            {
                "Event": "SparkListenerApplicationStart",
                "App Name": "one",
                "App ID": name,
                "Timestamp": began,
                "User": "",
            },
            {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": properties},
            *([] if ended is None else [{"Event": "SparkListenerApplicationEnd", "Timestamp": ended}]),
        ]
        text = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)
        (self.folder / folder / name).write_text(text, encoding="utf-8")

    def seen(self, *command: str, code: int | None = None, **variables: str) -> ObservedApplications:
        """What is seen of it."""
        return self.watch.seen(command, variables, code=code)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """A command that has left nothing yet."""
    return Command(tmp_path)


def test_a_new_log_with_the_launch_id_is_read(command: Command) -> None:
    """Then no launch is unexplained."""
    command.log(command.launch().id)
    seen = command.seen()
    assert ([read.app.name for read in seen.readings], seen.unseen) == (["one"], [])


@pytest.mark.parametrize("why", ["finished", "of another command", "still running"])
def test_only_finished_applications_of_the_command_are_exported(
    command: Command, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """An application that still runs would be exported as if it were killed."""
    launch = command.launch()
    command.log("another-1" if why == "of another command" else launch.id, name="local-1.inprogress")
    alive = {launch.id: [1]} if why == "still running" else {}
    monkeypatch.setattr("spark_app.observe.results.launches_alive", lambda _: alive)
    monkeypatch.setattr("spark_app.observe.results.SETTLE_SECONDS", 0.0)
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.http_endpoint)
        export = LogExport(environment="test", thresholds=Thresholds(), patience=60.0, errors=TelemetryErrors())
        command.watch.seen([], {}, export=export)
        assert export.finish()
    names = [span.name for span in receiving.spans]
    assert names == (["application one"] if why == "finished" else [])


@pytest.mark.parametrize(
    ("times", "codes"),
    [
        ([(1000, 2000)], [3]),
        ([(1000, 2000), (3000, 4000)], [None, 3]),
        ([(1000, 3500), (3000, 4000)], [None, None]),
        ([(1000, None)], [3]),
    ],
)
def test_the_exit_code_is_that_of_the_last_application(
    command: Command, times: list[tuple[int, int | None]], codes: list[int | None]
) -> None:
    """The only one, or the one that began after all others had ended; of programs at once it is not known."""
    launch = command.launch().id
    for number, (began, ended) in enumerate(times):
        command.log(launch, name=f"local-{number}", began=began, ended=ended)
    apps = [reading.app for reading in command.seen(code=3).readings]
    assert [app.process_exit_code for app in apps] == codes
    assert {app.is_alive for app in apps} == {False}


def test_a_later_session_of_a_process_beside_others_has_no_exit_code(command: Command) -> None:
    """It began after all other applications had ended; its process did not, and the exit code may be of another one."""
    launches = [command.launch(number=number).id for number in (1, 2)]
    command.log(launches[0], name="local-1", began=1000, ended=2500)
    command.log(launches[1], name="local-2", began=1000, ended=2000, submitted=900)
    command.log(launches[1], name="local-3", began=3000, ended=4000, submitted=900)
    apps = [reading.app for reading in command.seen(code=3).readings]
    assert [app.process_exit_code for app in apps] == [None] * 3


def test_a_process_that_goes_on_has_no_exit_code(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that the command left in the background."""
    launch = command.launch().id
    command.log(launch, name="local-1.inprogress")
    monkeypatch.setattr("spark_app.observe.results.launches_alive", lambda _: {launch: [1]})
    monkeypatch.setattr("spark_app.observe.results.SETTLE_SECONDS", 0.0)
    (reading,) = command.seen(code=3).readings
    assert (reading.app.is_alive, reading.app.process_exit_code) == (True, None)


def test_a_log_of_another_command_is_ignored(command: Command) -> None:
    """Though it is written into the same folder meanwhile."""
    command.launch("pyspark-shell")
    command.log("another-1")
    seen = command.seen()
    assert (seen.readings, len(seen.unseen)) == ([], 1)


def test_a_log_is_recognised_after_its_rename(command: Command) -> None:
    """Spark removes `.inprogress`; a log that existed before the command is ignored under both names."""
    logs = command.folder / "events"
    (logs / "before.inprogress").write_text("no event\n")
    command.watch = LaunchWatcher(command.switch)
    command.log(command.launch().id, name="local-1.inprogress")
    for name in ("before", "local-1"):
        (logs / f"{name}.inprogress").rename(logs / name)
    seen = command.seen()
    assert ([read.log.name for read in seen.readings], seen.unseen) == (["local-1"], [])


def test_unreadable_lines_are_counted(command: Command) -> None:
    """The table may show less than the application did."""
    command.log(command.launch().id)
    with (command.folder / "events" / "local-1").open("a") as log:
        log.write("no event\n")
    seen = command.seen()
    assert len(seen.readings) == 1
    assert seen.unseen == [f"{seen.readings[0].log}: Skipped 1 unreadable line of the log."]


def test_a_log_in_a_configured_local_folder_is_read(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the clock of its file system may be behind."""
    monkeypatch.setattr("spark_app.observe.results.TICK_SECONDS", 60.0)
    command.watch, now = LaunchWatcher(command.switch), time.time()
    configured = command.folder / "configured"
    configured.mkdir()
    place = f"spark.eventLog.dir={configured.as_uri()}"
    launch = command.launch("--conf", "spark.eventLog.enabled=true", "--conf", place, mode="own")
    command.log(launch.id, folder="configured")
    os.utime(configured / "local-1", (now - 30, now - 30))
    seen = command.seen()
    assert ([read.app.name for read in seen.readings], seen.unseen) == (["one"], [])


def test_a_log_that_is_being_closed_is_waited_for(command: Command) -> None:
    """In any folder, and though another log of the command is closed already."""
    configured = command.folder / "configured"
    configured.mkdir()
    place = f"spark.eventLog.dir={configured.as_uri()}"
    launches = [command.launch(), command.launch("--conf", "spark.eventLog.enabled=true", "--conf", place, number=2)]
    command.log(launches[0].id)
    command.log(launches[1].id, folder="configured", name="local-2.inprogress")
    jvm = [sys.executable, "-c", CLOSING, f"-D{LAUNCH}={launches[1].id}", str(configured / "local-2.inprogress")]
    with (
        subprocess.Popen(jvm, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
        ThreadPoolExecutor(1) as aside,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        seeing = aside.submit(command.seen)
        with pytest.raises(AssertionError, match="not seen before"):
            poll_until(seeing.done, "not seen before", seconds=0.3)
        process.communicate(b"\n")
    assert [(read.app.id, read.is_finished) for read in seeing.result().readings] == [
        ("local-1", True), ("local-2.inprogress", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "mode", "expected"),
    [
        (
            (),
            "cluster",
            "a Spark application: deploy mode is cluster",
        ),
        (
            ("--conf", "spark.app.name=x", "-c", "spark.eventLog.enabled=False"),
            "own",
            "x: it disables its event log",
        ),
        (
            ("--conf", "spark.eventLog.dir=hdfs://me:secret@there:9000/logs"),
            "own",
            "its spark.eventLog.dir is hdfs://there:9000/logs",
        ),
        (("--conf", "spark.eventLog.dir=/no-such-folder"), "own", "/no-such-folder has no event log of it"),
        (("--remote", "sc://there:15002/;token=secret"), "client", "are on the server sc://there:15002/"),
        (("--remote", "local", "x.py"), "client", "Spark started without a session"),
        (("pyspark-shell",), "client", "Spark started without a session"),
    ],
)
def test_each_launch_without_a_log_is_explained_in_a_line(
    command: Command, arguments: tuple[str, ...], mode: str, expected: str
) -> None:
    """Without secrets."""
    command.launch(*arguments, mode=mode)
    (line,) = command.seen().unseen
    assert expected in line
    assert "secret" not in line


def test_a_launch_without_an_application_needs_no_explanation(command: Command) -> None:
    """As `spark-submit --version`."""
    command.launch("--version")
    assert command.seen().unseen == []


def test_a_command_without_spark_is_explained_in_a_line(command: Command) -> None:
    """Spark Connect is recognised if the address is known."""
    assert "no Spark was started" in command.seen("ls").unseen[0]
    for seen in (command.seen("ls", SPARK_REMOTE="sc://there"), command.seen("spark-shell", "--remote", "sc://there")):
        assert seen.unseen == ["Spark Connect: the application and its event log are on the server sc://there"]
    assert "no Spark was started" in command.seen("ls", SPARK_REMOTE="local[2]").unseen[0]


def test_an_unreadable_log_is_explained_in_a_line(command: Command) -> None:
    """As one with another compression codec."""
    launch = command.launch()
    command.log(launch.id, name="local-1.lz4")
    assert any("lz4" in line for line in command.seen().unseen)


def test_an_application_without_a_name_has_that_of_its_program(command: Command) -> None:
    """And so has its log: a later report calls it the same. A name of its own, or a given one, stays."""
    launch = command.launch().id
    for number, name in enumerate(("pyspark-shell", "own")):
        command.log(launch, name=f"local-{number}", began=1000 + number, ended=2000 + number)
        file = command.folder / "events" / f"local-{number}"
        file.write_text(file.read_text(encoding="utf-8").replace('"App Name":"one"', f'"App Name":"{name}"'))
    readings = command.seen("python", "jobs/flights.py").readings
    assert [each.app.name for each in readings] == ["flights", "own"]
    command.watch.annotate(readings, None)
    assert [read(each.log).app.name for each in readings] == ["flights", "own"]


@pytest.mark.parametrize("is_typed", [False, True])
def test_whether_somebody_types_into_a_program_travels_with_its_log(command: Command, *, is_typed: bool) -> None:
    """A later report knows as well that nobody thought between its queries."""
    command.log(command.launch().id, ended=2000)
    (reading,) = command.seen("python", *["-i"] * is_typed, "flights.py", code=0).readings
    command.watch.annotate([reading], None)
    for app in (reading.app, read(reading.log).app):
        assert (app.can_type, app.is_batch) == (is_typed, not is_typed)


def test_a_session_of_a_server_is_named(command: Command) -> None:
    """By its id, which the log of the server has, too; that of an application of the command is in its report."""
    launch = command.launch().id
    command.log(launch)
    log_of_server = command.folder / "events" / "local-1"
    started = {"Event": f"{CONNECT_EVENT}SessionStarted", "sessionId": "local", "userId": "", "eventTime": 1500}
    with log_of_server.open("a", encoding="utf-8") as file:
        file.write(json.dumps(started, separators=(",", ":")) + "\n")
    notes = [{"server": "there:15002", "session": session, "user": "ana"} for session in ("local", "s-1")]
    noted = command.folder / "scratch" / "python-logs" / connect_sessions.FILE
    noted.write_text("".join(json.dumps(note) + "\n" for note in notes) + '{"server"', encoding="utf-8")
    assert command.seen("python", "job.py").unseen == [
        f"Spark Connect: session s-1 of ana is in the event log of the server sc://there:15002: {HELP}"
    ]


def test_a_client_without_a_spark_of_its_own_is_explained_by_its_sessions(command: Command) -> None:
    """A few of them; nothing says that no Spark was started."""
    noted = command.folder / "scratch" / "python-logs" / connect_sessions.FILE
    notes = ({"server": "there:1", "session": f"s-{number}", "user": ""} for number in range(7))
    noted.write_text("".join(json.dumps(note) + "\n" for note in notes), encoding="utf-8")
    *lines, rest = command.seen("python", "job.py").unseen
    assert ([line.split()[3] for line in lines], rest) == ([f"s-{number}" for number in range(5)], "2 more sessions")
