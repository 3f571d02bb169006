"""The live compose stack as the tests handle it: brought up, asked, and harmed."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
FILE: Final = "docker-compose.full.yml"
READY_SECONDS: Final = 420


@dataclass
class Stack:
    """The full stack, without the services whose image can neither be pulled nor built here.

    Attributes:
        left_out: Those services.
        seconds: How long it took until all was healthy.
    """

    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def up(self) -> None:
        """Brings it up and waits until everything is healthy."""
        services = self._services()
        self.left_out = sorted(name for name, image in services.items() if not _is_there(image))
        self.left_out += sorted(f"{name}-setup" for name in self.left_out if f"{name}-setup" in services)
        began = time.monotonic()
        wanted = [name for name in services if name not in self.left_out]
        compose("up", "--detach", "--wait", f"--wait-timeout={READY_SECONDS}", "--no-build", *wanted)
        self.seconds = time.monotonic() - began

    def down(self) -> None:
        """Ends all containers; the data stays."""
        compose("down")

    def _services(self) -> dict[str, str]:
        content = json.loads(compose("config", "--format", "json"))
        return {name: service["image"] for name, service in content["services"].items()}


def compose(*arguments: str) -> str:
    """What `docker compose` answers.

    Raises:
        AssertionError: It failed; tells what it said, and the last lines of what had ended.
    """
    done = subprocess.run(
        ["docker", "compose", "-f", FILE, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
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
    finally:
        process.kill()
        process.wait()


def etl(date: str) -> list[dict[str, Any]]:
    """Runs the main job of a day on the cluster; gives the records of its runs."""
    done = run_in("spark-master", "run_etl.sh", date, "--json")
    runs: list[dict[str, Any]] = json.loads(done.stdout)["runs"]
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
