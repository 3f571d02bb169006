import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from app.observe.launches import LAUNCH, Launch, Switch
from app.observe.seen import Seen, Watch
from tests.polling import poll_until

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
        self.switch = Switch(folder / "events", folder / "scratch")
        self.switch.variables({})
        self.watch = Watch(self.switch)

    def launch(self, *arguments: str, mode: str = "client", number: int = 1) -> Launch:
        """Notes a launch as our `spark-env.sh` does."""
        words = [mode, str(self.folder), SUBMIT, *arguments]
        note = self.folder / "scratch" / "launches" / str(number)
        note.write_text("".join(f"{word}\0" for word in words), encoding="utf-8")
        (launch,) = (launch for launch in self.switch.launches() if launch.id.endswith(f"-{number}"))
        return launch

    def log(self, launch: str, *, folder: str = "events", name: str = "local-1") -> None:
        """Writes the event log of an application that belongs to a launch."""
        events = [
            {"Event": "SparkListenerLogStart", "Spark Version": "4.2.0"},
            {
                "Event": "SparkListenerApplicationStart",
                "App Name": "one",
                "App ID": name,
                "Timestamp": 1000,
                "User": "",
            },
            {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {LAUNCH: launch}},
        ]
        text = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)
        (self.folder / folder / name).write_text(text, encoding="utf-8")

    def seen(self, *command: str, **variables: str) -> Seen:
        """What is seen of it."""
        return self.watch.seen(command, variables)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """A command that has left nothing yet."""
    return Command(tmp_path)


def test_a_log_of_the_command_is_read(command: Command) -> None:
    """A new log with the id of our launch is the command's; nothing is unseen then."""
    command.log(command.launch().id)
    seen = command.seen()
    assert ([read.app.name for read in seen.readings], seen.unseen) == (["one"], [])


def test_a_log_of_another_command_is_not_taken(command: Command) -> None:
    """What others write into the same folder meanwhile is not ours."""
    command.launch("pyspark-shell")
    command.log("another-1")
    seen = command.seen()
    assert (seen.readings, len(seen.unseen)) == ([], 1)


def test_a_log_is_the_same_log_when_it_is_closed(command: Command) -> None:
    """Spark takes `.inprogress` off its name: one that began with the command is its own, one of before is not."""
    logs = command.folder / "events"
    (logs / "before.inprogress").write_text("no event\n")
    command.watch = Watch(command.switch)
    command.log(command.launch().id, name="local-1.inprogress")
    for name in ("before", "local-1"):
        (logs / f"{name}.inprogress").rename(logs / name)
    seen = command.seen()
    assert ([read.log.name for read in seen.readings], seen.unseen) == (["local-1"], [])


def test_lines_that_could_not_be_read_are_told(command: Command) -> None:
    """What is printed of an application may be less than what it did."""
    command.log(command.launch().id)
    with (command.folder / "events" / "local-1").open("a") as log:
        log.write("no event\n")
    seen = command.seen()
    assert len(seen.readings) == 1
    assert seen.unseen == [f"{seen.readings[0].log}: 1 unreadable line"]


def test_a_log_in_a_folder_of_theirs_is_read_there(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sets an event log of his own is seen all the same where it is on this machine, whose clocks may differ."""
    monkeypatch.setattr("app.observe.seen.TICK_SECONDS", 60.0)
    command.watch, now = Watch(command.switch), time.time()
    theirs = command.folder / "theirs"
    theirs.mkdir()
    place = f"spark.eventLog.dir={theirs.as_uri()}"
    launch = command.launch("--conf", "spark.eventLog.enabled=true", "--conf", place, mode="own")
    command.log(launch.id, folder="theirs")
    os.utime(theirs / "local-1", (now - 30, now - 30))
    seen = command.seen()
    assert ([read.app.name for read in seen.readings], seen.unseen) == (["one"], [])


def test_a_log_that_is_being_closed_is_waited_for(command: Command) -> None:
    """Wherever it is, and though another one of the command is closed already."""
    theirs = command.folder / "theirs"
    theirs.mkdir()
    place = f"spark.eventLog.dir={theirs.as_uri()}"
    launches = [command.launch(), command.launch("--conf", "spark.eventLog.enabled=true", "--conf", place, number=2)]
    command.log(launches[0].id)
    command.log(launches[1].id, folder="theirs", name="local-2.inprogress")
    jvm = [sys.executable, "-c", CLOSING, f"-D{LAUNCH}={launches[1].id}", str(theirs / "local-2.inprogress")]
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
    ("arguments", "mode", "told"),
    [
        ((), "cluster", "a Spark application: deploy mode cluster: its driver runs elsewhere"),
        (
            ("--conf", "spark.app.name=x", "-c", "spark.eventLog.enabled=False"),
            "own",
            "x: it switches its event log off",
        ),
        (("--conf", "spark.eventLog.dir=hdfs://me:secret@there:9000/logs"), "own", "is hdfs://there:9000/logs, which"),
        (("--conf", "spark.eventLog.dir=/no-such-folder"), "own", "there is no log of it in /no-such-folder"),
        (("--remote", "sc://there:15002/;token=secret"), "client", "runs in the server sc://there:15002/, and"),
        (("--remote", "local", "x.py"), "client", "Spark started, but no session was seen"),
        (("pyspark-shell",), "client", "Spark started, but no session was seen"),
    ],
)
def test_what_is_not_seen_is_said_in_a_line(command: Command, arguments: tuple[str, ...], mode: str, told: str) -> None:
    """Each launch without a log has one line with the reason, as far as it can be known, and no secret in it."""
    command.launch(*arguments, mode=mode)
    (line,) = command.seen().unseen
    assert told in line
    assert "secret" not in line


def test_a_question_to_spark_is_not_missed(command: Command) -> None:
    """`spark-submit --version` has no application, and nothing is said of it."""
    command.launch("--version")
    assert command.seen().unseen == []


def test_no_spark_is_said_in_a_line(command: Command) -> None:
    """A command without Spark, and one that only speaks to a Spark Connect server, are told apart where possible."""
    assert "no Spark was started" in command.seen("ls").unseen[0]
    for seen in (command.seen("ls", SPARK_REMOTE="sc://there"), command.seen("spark-shell", "--remote", "sc://there")):
        assert seen.unseen == [
            "Spark Connect: the application runs in the server sc://there, and its event log is there"
        ]
    assert "no Spark was started" in command.seen("ls", SPARK_REMOTE="local[2]").unseen[0]


def test_a_log_that_cannot_be_read_is_said_in_a_line(command: Command) -> None:
    """A compressed log of a kind that is not read here is no reason to say nothing."""
    launch = command.launch()
    command.log(launch.id, name="local-1.lz4")
    assert any("lz4" in line for line in command.seen().unseen)
