"""What the start script asks of `docker` and `docker compose`, as data."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from full_stack.errors import USAGE_OR_MACHINE, StartError

FILE = "docker-compose.full.yml"
LOG_LINES = 20


@dataclass(frozen=True)
class Port:
    """A port of a container that is open on this machine."""

    address: str
    published: int
    target: int


@dataclass(frozen=True)
class Service:
    """A service of the compose files.

    Attributes:
        is_one_shot: Whether it does one thing and ends.
        needs: The services that must be there before it.
    """

    name: str
    image: str
    container: str
    is_built_here: bool
    is_one_shot: bool
    needs: frozenset[str]
    ports: tuple[Port, ...]


@dataclass(frozen=True)
class Container:
    """A container of this project as Docker sees it now; `health` is empty where nothing looks at it."""

    id: str
    name: str
    service: str
    state: str
    health: str
    exit_code: int
    ports: frozenset[int]


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What `docker` answers, and how it ended."""
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)


def json_lines(text: str) -> list[Any]:
    """The values in Docker's JSON: one a line, or, from older programs, one list."""
    values = [json.loads(line) for line in text.splitlines() if line.strip()]
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values


class Compose:
    """The full stack of one project folder; every command sees `.env` and, if there is one, `.env.local`."""

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        self._root = root
        self._environment = environment
        files = [name for name in (".env", ".env.local") if (root / name).is_file()]
        self._command = ["docker", "compose", *(word for name in files for word in ("--env-file", name)), "-f", FILE]

    def services(self) -> dict[str, Service]:
        """The services of the compose files by name."""
        return {name: _service(name, content) for name, content in self._config()["services"].items()}

    def has_data(self, volume: str) -> bool:
        """Whether a volume is there already."""
        return docker("volume", "inspect", self._config()["volumes"][volume]["name"]).returncode == 0

    def containers(self) -> list[Container]:
        """The containers that there are, those that ended included."""
        return [_container(found) for found in json_lines(self._asked("ps", "--all", "--format", "json"))]

    def build(self, service: str) -> bool:
        """Whether the image of a service could be built; how it goes is to be seen."""
        return self._shown("build", service)

    def pull(self, service: str) -> bool:
        """Whether the image of a service could be fetched; how it goes is to be seen."""
        return self._shown("pull", service)

    def change_grafana_password(self, password: str) -> bool:
        """Whether Grafana's volume has this password now; its container need not be up, and no port is opened."""
        words = ["run", "--rm", "--no-deps", "--no-TTY", "--entrypoint", "grafana", "grafana", "cli"]
        words += ["--homepath", "/usr/share/grafana", "--configOverrides", "cfg:default.paths.data=/var/lib/grafana"]
        done = self._run(*words, "admin", "reset-admin-password", "--password-from-stdin", given=password)
        return done.returncode == 0

    def up(self, services: list[str]) -> Up:
        """Begins to start services, in the order in which they need each other."""
        told = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - Up closes it
        process = subprocess.Popen(
            [*self._command, "up", "--detach", "--no-build", "--quiet-pull", *services],
            cwd=self._root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=subprocess.STDOUT,
        )
        return Up(process, told)

    def _config(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._asked("config", "--format", "json"))
        return found

    def _asked(self, *arguments: str) -> str:
        done = self._run(*arguments)
        if done.returncode != 0:
            raise StartError(f"docker compose {arguments[0]}: {done.stderr.strip()}", exit_code=USAGE_OR_MACHINE)
        return done.stdout

    def _run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [*self._command, *arguments]
        return subprocess.run(
            command, cwd=self._root, env=self._environment, input=given, capture_output=True, text=True, check=False
        )

    def _shown(self, *arguments: str) -> bool:
        command = [*self._command, *arguments]
        return subprocess.run(command, cwd=self._root, env=self._environment, check=False).returncode == 0


class Up:
    """A `docker compose up` at work: it stays until everything that others need is healthy."""

    def __init__(self, process: subprocess.Popen[bytes], told: IO[str]) -> None:
        self._process = process
        self._told = told

    def exit_code(self) -> int | None:
        """How it ended; None while it is at work."""
        return self._process.poll()

    def last_lines(self) -> list[str]:
        """What it said last."""
        self._told.seek(0)
        return self._told.read().splitlines()[-LOG_LINES:]

    def end(self) -> None:
        """Ends it if it is still at work; the containers stay as they are."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


def absent(images: Collection[str]) -> list[str]:
    """The images that are not on this machine."""
    if docker("image", "inspect", *images).returncode == 0:  # most often; one question is faster than twelve
        return []
    return [image for image in images if docker("image", "inspect", image).returncode != 0]


def last_lines(container: str) -> list[str]:
    """What a container said last."""
    done = subprocess.run(
        ["docker", "logs", "--tail", str(LOG_LINES), container],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )  # fmt: skip
    return done.stdout.splitlines()


def _service(name: str, content: dict[str, Any]) -> Service:
    ports = [port for port in content.get("ports", []) if port.get("published")]
    return Service(
        name=name,
        image=content["image"],
        container=content.get("container_name", name),
        is_built_here="build" in content,
        is_one_shot=content.get("restart") == "no",
        needs=frozenset(content.get("depends_on", {})),
        ports=tuple(
            Port(port.get("host_ip", "0.0.0.0"), int(port["published"]), int(port["target"])) for port in ports
        ),
    )


def _container(found: dict[str, Any]) -> Container:
    return Container(
        id=found["ID"],
        name=found["Name"],
        service=found["Service"],
        state=found["State"],
        health=found.get("Health") or "",
        exit_code=int(found.get("ExitCode") or 0),
        ports=frozenset(port["PublishedPort"] for port in found.get("Publishers") or [] if port["PublishedPort"]),
    )
