"""Checks this machine before the stack starts: Docker, memory, disk, ports, and the secrets of Grafana and Jupyter."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ENGINE = (20, 10)
COMPOSE = (2, 24)  # the first that merges included files as docker-compose.full.yml needs it
GB = 10**9
MEMORY = 8 * GB
KERNEL_MEMORY = GB // 2  # a machine sold with 8 GB reports less
DISK = 10 * GB
MAX_MAP_COUNT = 262_144
MAX_MAP_COUNT_FILE = Path("/proc/sys/vm/max_map_count")
SOCKET_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"
PINS_FILE = ".env"
OWN_FILE = ".env.local"
"""The user's variables: Compose reads it as `compose/.env`, a link, after the shell and `.env`."""
DEFAULT_SECRETS = {"GRAFANA_ADMIN_PASSWORD": "admin", "JUPYTER_TOKEN": "spark-app"}
"""The secrets of Grafana and Jupyter and their defaults, which are good enough for the loopback only."""
DRIVER_PORT = ("SPARK_DRIVER_PORT", 4040)
"""The variable and the default of the port of the web UI of drivers: any other Spark on the machine may have it."""
DRIVER_PORTS = 16
"""How many ports a driver tries by itself: `spark.port.maxRetries`."""
LOOPBACK = re.compile(r"|127\.\d+\.\d+\.\d+|::1|\[::1\]|localhost")
ASSIGNMENT = re.compile(r"""\s*(?:export\s+)?(\w+)\s*=\s*("[^"]*"|'[^']*'|.*?)(?:\s+#.*)?\s*""")


class StartError(Exception):
    """The stack cannot start, or did not.

    Attributes:
        exit_code: 2 if the machine or the command line must change first, 1 if something that was started failed.
    """

    def __init__(self, message: str, *, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `docker` and captures its output."""
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, errors="replace", check=False)


def require_docker() -> dict[str, Any]:
    """Returns the answer of `docker info`.

    Raises:
        StartError: Docker or Compose is missing or too old, or the engine does not answer.
    """
    if shutil.which("docker") is None:
        raise StartError("No Docker found: install Docker Engine and its Compose plugin.")
    answer = docker("info", "--format", "{{json .}}")
    info: dict[str, Any] = json.loads(answer.stdout) if answer.stdout.startswith("{") else {}
    if answer.returncode != 0 or not info.get("ServerVersion"):
        reasons = [*info.get("ServerErrors", []), *answer.stderr.splitlines(), "start it"]
        raise StartError(f"The Docker engine does not answer: {reasons[0]}")
    require_version(ENGINE, info["ServerVersion"], program="The Docker engine")
    compose = docker("compose", "version", "--short")
    if compose.returncode != 0:
        raise StartError("This Docker has no Compose: install its plugin (docker-compose-plugin).")
    require_version(COMPOSE, compose.stdout.strip(), program="Docker Compose")
    return info


def require_version(least: tuple[int, int], version: str, *, program: str) -> None:
    """Refuses a version that is too old.

    Raises:
        StartError: It is, or is no version.
    """
    numbers = re.search(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < least:
        raise StartError(f"{program} {version} is too old: {least[0]}.{least[1]} or newer is needed.")


def shortages(info: Mapping[str, Any], root: Path) -> Iterator[str]:
    """Memory and disk space that the engine lacks."""
    memory = int(info.get("MemTotal") or 0)
    if memory < MEMORY - KERNEL_MEMORY:
        yield f"Docker has {memory / GB:.1f} GB of memory; the stack needs {MEMORY // GB} GB."
    images = Path(info.get("DockerRootDir") or root)
    folder = images if images.is_dir() else root  # Docker Desktop keeps images in a virtual machine on this disk
    free = shutil.disk_usage(folder).free
    if free < DISK:
        yield f"{free / GB:.1f} GB are free in {folder}; the stack needs {DISK // GB} GB for images and data."


def map_count_warnings() -> Iterator[str]:
    """A warning if Linux allows a process fewer memory maps than Elasticsearch asks for."""
    try:
        count = int(MAX_MAP_COUNT_FILE.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return  # not Linux
    if count < MAX_MAP_COUNT:
        yield (
            f"vm.max_map_count is {count}; Elasticsearch may need {MAX_MAP_COUNT}: "
            f"sudo sysctl -w vm.max_map_count={MAX_MAP_COUNT}"
        )


class Ports(NamedTuple):
    """What may hold the ports of the stack.

    Attributes:
        services: The services of `docker compose config`.
        containers: The lines of `docker ps`.
        project: The Compose project, whose own containers may hold them.
    """

    services: Mapping[str, Any]
    containers: list[Mapping[str, str]]
    project: str

    def published(self) -> Iterator[tuple[int, str, str]]:
        """Each port with its service and its address; a range is for Docker to choose from."""
        for name, service in self.services.items():
            for port in service.get("ports", []):
                if port["published"].isdigit():
                    yield int(port["published"]), name, port.get("host_ip", "")

    def holder(self, number: int, host: str) -> str:
        """The program that listens on a port; empty if none does, or the stack itself."""
        container = next((each for each in self.containers if _publishes(each, number)), None)
        if container is not None:
            return "" if belongs_to(container, self.project) else f"the container {container['Names']}"
        return _process_on(number) if _is_taken(host, number) else ""


def ports_taken(ports: Ports) -> Iterator[str]:
    """Ports of the services on which another program listens, with that program."""
    for number, name, host in ports.published():
        if holder := ports.holder(number, host):
            yield (
                f"Port {number} (for {name}) is taken by {holder}: "
                "stop it, or set another port in .env.local (docs/reference.md names the variable)."
            )


def driver_port(root: Path, environment: Mapping[str, str]) -> str:
    """The port of the web UI of drivers."""
    variable, default = DRIVER_PORT
    return settings(root, environment).get(variable) or str(default)


def move_driver_port(root: Path, environment: Mapping[str, str], ports: Ports) -> str:
    """Sets the next free port for the web UI of drivers in `.env.local` if another program has the present one.

    Returns:
        What happened; empty if nothing did. A port that the shell sets stays.
    """
    variable, number = DRIVER_PORT[0], driver_port(root, environment)
    published = {each: host for each, _, host in ports.published()}
    if environment.get(variable) or not number.isdigit() or int(number) not in published:
        return ""
    first, host = int(number), published[int(number)]
    candidates = [each for each in range(first + 1, first + DRIVER_PORTS) if each not in published]
    holder = ports.holder(first, host)
    free = next((each for each in candidates if not ports.holder(each, host)), None) if holder else None
    if free is None:
        return ""
    _write_variables(root / OWN_FILE, {variable: str(free)})
    return f"Port {number} is taken by {holder}: the web UI of a driver gets {free} ({variable} in {OWN_FILE})."


def _publishes(container: Mapping[str, str], port: int) -> bool:
    """Whether a line of `docker ps` has a port; it merges neighbours, `127.0.0.1:4317-4318->4317-4318/tcp`."""
    ranges = re.findall(r":(\d+)(?:-(\d+))?->", container.get("Ports", ""))
    return any(int(first) <= port <= int(last or first) for first, last in ranges)


def belongs_to(container: Mapping[str, str], project: str) -> bool:
    """Whether a line of `docker ps` is of a Compose project."""
    return f"com.docker.compose.project={project}" in container.get("Labels", "").split(",")


def _is_taken(host: str, port: int) -> bool:
    address = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as client:
        client.settimeout(1)
        return client.connect_ex((address, port)) == 0


def _process_on(port: int) -> str:
    """The process that listens on a port, as far as Linux shows it; only root sees those of other users."""
    links = {link for table in SOCKET_TABLES if table.is_file() for link in _listeners(table, port)}
    for descriptor in Path("/proc").glob("[0-9]*/fd/*") if links else ():
        try:
            if str(descriptor.readlink()) in links:
                process = descriptor.parents[1]
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                return f"process {process.name} ({command[:80]})"
        except OSError:
            continue  # the process ended meanwhile, or belongs to another user
    return "another program"


def _listeners(table: Path, port: int) -> Iterator[str]:
    for line in table.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
            yield f"socket:[{fields[9]}]"


def settings(root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that Compose sees: those of the shell, then of `.env`, then of `.env.local`."""
    return {**_variables(root / OWN_FILE), **_variables(root / PINS_FILE), **environment}


def _variables(file: Path) -> dict[str, str]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {match[1]: match[2].strip("'\"") for match in map(ASSIGNMENT.fullmatch, lines) if match}


def require_effect(root: Path) -> None:
    """Refuses variables in `.env.local` that `.env` sets, too.

    Raises:
        StartError: Compose would silently use the values of `.env`.
    """
    if both := sorted(_variables(root / OWN_FILE).keys() & _variables(root / PINS_FILE).keys()):
        raise StartError(
            f"{OWN_FILE} sets {' and '.join(both)}, which Compose takes from {PINS_FILE}: set it in the shell."
        )


def require_secrets(root: Path, environment: Mapping[str, str], *, generate: bool) -> list[str]:
    """Refuses to open Grafana and Jupyter to others with a default password; returns the secrets generated now.

    Raises:
        StartError: A secret is not set and must not be generated.
    """
    values = settings(root, environment)
    missing = [name for name, default in DEFAULT_SECRETS.items() if values.get(name, "") in ("", default)]
    if not missing:
        return []
    names = " and ".join(missing)
    if not generate:
        raise StartError(
            f"BIND_ADDRESS={values['BIND_ADDRESS']} opens Grafana and Jupyter to others: "
            f"set {names} in {OWN_FILE}, or let --generate-passwords set it."
        )
    if any(environment.get(name) for name in missing):
        raise StartError(f"The shell sets {names} to a default, which overrides {OWN_FILE}: unset it.")
    _write_variables(root / OWN_FILE, {name: secrets.token_urlsafe(24) for name in missing}, is_secret=True)
    return missing


def _write_variables(path: Path, values: Mapping[str, str], *, is_secret: bool = False) -> None:
    """Sets variables in an env file; its other lines stay. A file with secrets only its owner can read."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    mode = 0o600 if is_secret else stat.S_IMODE(path.stat().st_mode) if path.is_file() else 0o644
    kept = [line for line in lines if not ((match := ASSIGNMENT.fullmatch(line)) and match[1] in values)]
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in [*kept, *(f"{name}={value}" for name, value in values.items())])
    new.replace(path)
