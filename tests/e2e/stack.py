"""The live compose stack, as the tests start it, use it and harm it."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.polling import poll_until
from tests.readme import commands

ROOT: Final = Path(__file__).resolve().parents[2]
FULL: Final = "docker-compose.full.yml"
OBSERVABILITY: Final = "docker-compose.observability.yml"
READY_SECONDS: Final = 420
RUN_SECONDS: Final = 600
STORES: Final = ("prometheus", "elasticsearch", "jaeger")
WEBHOOK: Final = "http://jupyter:9999/"
"""Where Alertmanager sends alerts: to Jupyter's container, so that no program of this machine listens to others."""
DRIVER_PORT: Final = "14040"
"""The port of the web UI of drivers: Spark of other tests on this machine has 4040."""
[START] = [command for command in commands() if command.endswith("start-full-stack.sh")]
"""The command of the README."""
ADVICE: Final = re.compile(r"^To start without them: \S+ (.+)$", re.MULTILINE)
HURRIED: Final = (
    "rm -rf /dev/shm/hurried && cp -r /app/config /dev/shm/hurried && "
    "sed -i -e '/^  random_forest:/d' -e '/^  gradient_boosted_trees:/d' -e 's/^folds:.*/folds: 2/' "
    "-e 's/^bootstrap:.*/bootstrap: 20/' -e 's/^history_days:.*/history_days: 6/' "
    "-e 's/^held_out_days:.*/held_out_days: 1/' /dev/shm/hurried/ml/refunds.yml"
)
"""Makes a configuration of models that takes the least time: six days of history, and one candidate."""


@contextmanager
def started(file: str, project: str, *options: str) -> Iterator[str]:
    """A stack of another file, without what can neither be pulled nor built here; all of it is removed in the end.

    Yields:
        What the start script printed.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPOSE_PROJECT_NAME", project)
        done = _start_of(file, *options)
        if advice := ADVICE.search(done.stderr):
            done = _start_of(file, *options, *advice[1].split())
        assert done.returncode == 0, done.stderr[-3000:]
        yield done.stdout
        compose("down", "--volumes", file=file)


def _start_of(file: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [START, "--no-sample", "--file", file, *options]
    return subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)


@dataclass
class Stack:
    """The full stack, without the services whose image can neither be pulled nor built here.

    Attributes:
        options: The options that the start script advised to leave them out.
        left_out: Those services.
        seconds: How long the last start took until all was healthy.
    """

    options: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def up(self) -> None:
        """Starts it with the start script; follows its advice about images that are not to be had."""
        done = self._start()
        if advice := ADVICE.search(done.stderr):
            self.options = advice[1].split()
            done = self._start()
        assert done.returncode == 0, done.stderr[-3000:]
        self.left_out = re.findall(r"^(\S+) +left out\b", done.stdout, re.MULTILINE)

    def _start(self) -> subprocess.CompletedProcess[str]:
        began = time.monotonic()
        done = subprocess.run(
            [START, "--no-sample", *self.options],
            cwd=ROOT, env=environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.seconds = time.monotonic() - began
        return done

    def up_without_spark(self) -> None:
        """Starts only what observes, as for jobs that run elsewhere."""
        services = set(compose("config", "--services", file=OBSERVABILITY).split()) - set(self.left_out)
        compose("up", "--wait", f"--wait-timeout={READY_SECONDS}", "--no-deps", *services, file=OBSERVABILITY)

    def forget(self) -> None:
        """Removes its containers, its data and the image that it builds: what a machine has that never started it."""
        image = json.loads(compose("config", "--format", "json"))["services"]["spark-master"]["image"]
        compose("down", "--volumes")
        docker("image", "rm", "--force", image)
        assert not docker("images", "--quiet", image)

    def is_up(self) -> bool:
        """Whether it is running already."""
        return bool(compose("ps", "--quiet"))

    def down(self) -> None:
        """Stops and removes all containers; the data stays."""
        compose("down")


def environment() -> dict[str, str]:
    """The environment of the stack's commands: alerts go to the tests' receiver, and drivers have their own port."""
    return os.environ | {"ALERT_WEBHOOK_URL": WEBHOOK, "SPARK_DRIVER_PORT": DRIVER_PORT}


def compose(*arguments: str, file: str = FULL) -> str:
    """The output of `docker compose`.

    Raises:
        AssertionError: It failed; the message has its last lines.
    """
    done = subprocess.run(
        ["docker", "compose", "-f", file, *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"docker compose {' '.join(arguments)}: {done.stderr[-3000:]}"
    return done.stdout


def run_in(container: str, *command: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a container."""
    options = [option for name, value in variables.items() for option in ("--env", f"{name}={value}")]
    done = subprocess.run(
        ["docker", "exec", *options, container, *command], capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, f"{container}: {' '.join(command)}:\n{done.stdout}\n{done.stderr}"
    return done


@contextmanager
def running_in(container: str, *command: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a command in a container in the background."""
    options = [option for name, value in variables.items() for option in ("--env", f"{name}={value}")]
    process = subprocess.Popen(
        ["docker", "exec", "-i", *options, container, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:  # a program in the container outlives a killed client, but ends with its input
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        process.communicate(timeout=RUN_SECONDS)


def etl(*words: str) -> list[dict[str, Any]]:
    """Runs the daily job on the cluster; returns the records of its runs."""
    return records(run_in("spark-master", "run_etl.sh", *words, "--json").stdout)


@contextmanager
def running_job(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A daily job on the cluster, in the midst of its first run."""
    before = folders()
    with running_in("spark-master", *command, "--json") as process:
        poll_until(lambda: folders() > before or process.poll() is not None, "a run has begun", seconds=RUN_SECONDS)
        yield process


def seconds_since_end(runs: list[dict[str, Any]]) -> float:
    """Seconds since the last record of some runs was written."""
    now = time.time()
    return now - float(run_in("spark-master", "stat", "--format=%.Y", f"{runs[-1]['folder']}/run.json").stdout)


def folders() -> set[str]:
    """The folders of all runs so far."""
    return set(docker("exec", "spark-master", "ls", "/data/runs").split())


def ended(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Waits for the end of a job; returns the records of its runs.

    Raises:
        AssertionError: It failed.
    """
    out, err = process.communicate(timeout=RUN_SECONDS)
    assert process.returncode == 0, f"exit code {process.returncode}: {out}\n{err}"
    return records(out)


def records(document: str) -> list[dict[str, Any]]:
    """The run records in the output of `--json`."""
    runs: list[dict[str, Any]] = json.loads(document)["runs"]
    return runs


def kafka_topics() -> str:
    """The topics of the broker."""
    return run_in("kafka", "/opt/kafka/bin/kafka-topics.sh", "--bootstrap-server", "localhost:9092", "--list").stdout


def docker(*arguments: str) -> str:
    """The output of `docker`."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
