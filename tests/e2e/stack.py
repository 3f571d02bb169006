"""The live compose stack as the tests handle it: brought up, asked, and harmed."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.polling import poll_until

ROOT: Final = Path(__file__).resolve().parents[2]
FULL: Final = "docker-compose.full.yml"
OBSERVABILITY: Final = "docker-compose.observability.yml"
READY_SECONDS: Final = 420
RUN_SECONDS: Final = 600
WEBHOOK: Final = "http://jupyter:9999/"
"""Where Alertmanager sends alerts to: Jupyter's container, so that nothing of this machine has to listen to others."""


@dataclass
class Stack:
    """The services of a compose file, without those whose image can neither be pulled nor built here.

    Attributes:
        file: The compose file.
        left_out: Those services.
        seconds: How long it took until all was healthy.
    """

    file: str = FULL
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def up(self) -> None:
        """Brings it up and waits until everything is healthy."""
        services = self.find_left_out()
        began = time.monotonic()
        wanted = [name for name in services if name not in self.left_out]
        wait = ("--wait", f"--wait-timeout={READY_SECONDS}")
        compose("up", "--detach", *wait, "--no-build", *wanted, file=self.file)
        self.seconds = time.monotonic() - began

    def is_up(self) -> bool:
        """Whether somebody has started it."""
        return bool(compose("ps", "--quiet", file=self.file))

    def find_left_out(self) -> dict[str, str]:
        """Finds what has to be left out; gives all services with their images."""
        content = json.loads(compose("config", "--format", "json", file=self.file))
        services = {name: service["image"] for name, service in content["services"].items()}
        self.left_out = sorted(name for name, image in services.items() if not _is_there(image))
        return services

    def down(self) -> None:
        """Ends all containers; the data stays."""
        compose("down", file=self.file)


def compose(*arguments: str, file: str = FULL) -> str:
    """What `docker compose` answers.

    Raises:
        AssertionError: It failed; tells what it said.
    """
    done = subprocess.run(
        ["docker", "compose", "-f", file, *arguments],
        cwd=ROOT,
        env=os.environ | {"ALERT_WEBHOOK_URL": WEBHOOK},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"docker compose {' '.join(arguments)}: {done.stderr[-3000:]}"
    return done.stdout


def run_in(container: str, *command: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in a container that is up."""
    options = [option for name, value in variables.items() for option in ("--env", f"{name}={value}")]
    done = subprocess.run(
        ["docker", "exec", *options, container, *command], capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, f"{container}: {' '.join(command)}:\n{done.stdout}\n{done.stderr}"
    return done


@contextmanager
def running_in(container: str, *command: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A command at work in a container."""
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
    finally:  # what runs in the container ends with its input; it would outlive a client that is killed
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        process.communicate(timeout=RUN_SECONDS)


def etl(*words: str) -> list[dict[str, Any]]:
    """Runs the main job of a day on the cluster; gives the records of its runs."""
    return records(run_in("spark-master", "run_etl.sh", *words, "--json").stdout)


@contextmanager
def at_work(*command: str) -> Iterator[subprocess.Popen[str]]:
    """The main job on the cluster, in the midst of its first run."""
    before = folders()
    with running_in("spark-master", *command, "--json") as process:
        poll_until(lambda: folders() > before or process.poll() is not None, "a run has begun", seconds=RUN_SECONDS)
        yield process


def to_end(runs: list[dict[str, Any]]) -> float:
    """Seconds from the record of the last of some runs to now, when their command has ended."""
    now = time.time()
    return now - float(run_in("spark-master", "stat", "--format=%.Y", f"{runs[-1]['folder']}/run.json").stdout)


def folders() -> set[str]:
    """The folders of all runs so far."""
    return set(docker("exec", "spark-master", "ls", "/data/runs").split())


def ended(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """The records of the runs of a job, when it has ended.

    Raises:
        AssertionError: It did not end well.
    """
    out, err = process.communicate(timeout=RUN_SECONDS)
    assert process.returncode == 0, f"exit code {process.returncode}: {out}\n{err}"
    return records(out)


def records(document: str) -> list[dict[str, Any]]:
    """The records of the runs in what `--json` prints."""
    runs: list[dict[str, Any]] = json.loads(document)["runs"]
    return runs


def docker(*arguments: str) -> str:
    """What `docker` answers."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _is_there(image: str) -> bool:
    """Whether an image is here, or can be pulled."""
    return any(
        subprocess.run(["docker", *command, image], capture_output=True, check=False).returncode == 0
        for command in (("image", "inspect"), ("pull", "--quiet"))
    )
