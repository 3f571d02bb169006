"""Whether this machine can carry the stack: Docker, memory, disk, ports, names."""

from __future__ import annotations

import errno
import json
import re
import shutil
import socket
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from full_stack.compose import Container, Port, Service, docker, json_lines
from full_stack.errors import USAGE_OR_MACHINE, StartError

ENGINE = (20, 10)
COMPOSE = (2, 24)  # the first that merges included files as ours need it
GB = 10**9
MEMORY = 8 * GB
KEPT_BY_THE_KERNEL = GB // 2
DISK = 10 * GB
MAX_MAP_COUNT = 262_144
MAX_MAP_COUNT_FILE = Path("/proc/sys/vm/max_map_count")
SOCKET_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"


def require_docker() -> dict[str, Any]:
    """What the Docker engine says about itself.

    Raises:
        StartError: There is no Docker, its engine does not answer, or it or Compose is too old.
    """
    if shutil.which("docker") is None:
        raise StartError("No Docker found: install Docker Engine and its Compose plugin.", exit_code=USAGE_OR_MACHINE)
    asked = docker("info", "--format", "{{json .}}")
    info: dict[str, Any] = json.loads(asked.stdout) if asked.stdout.strip().startswith("{") else {}
    if asked.returncode != 0 or not info.get("ServerVersion"):
        why = [*info.get("ServerErrors", []), *asked.stderr.splitlines()][:1] or ["start it"]
        raise StartError(f"The Docker engine does not answer: {why[0]}", exit_code=USAGE_OR_MACHINE)
    _require(ENGINE, info["ServerVersion"], what="The Docker engine")
    compose = docker("compose", "version", "--short")
    if compose.returncode != 0:
        raise StartError(
            "This Docker has no Compose: install its plugin (docker-compose-plugin).", exit_code=USAGE_OR_MACHINE
        )
    _require(COMPOSE, compose.stdout.strip(), what="Docker Compose")
    return info


def shortages(info: dict[str, Any], root: Path) -> Iterator[str]:
    """What the engine has too little of: memory, space for images and data."""
    memory = int(info.get("MemTotal") or 0)
    if memory < MEMORY - KEPT_BY_THE_KERNEL:
        yield f"Docker has {memory / GB:.1f} GB of memory; the stack needs {MEMORY // GB} GB."
    images = Path(info.get("DockerRootDir") or root)
    folder = images if images.is_dir() else root  # where the engine has a machine of its own, this one's disk holds it
    free = shutil.disk_usage(folder).free
    if free < DISK:
        yield f"{free / GB:.1f} GB are free in {folder}; the stack needs {DISK // GB} GB for images and data."


def map_count_too_low() -> Iterator[str]:
    """Elasticsearch maps its files into memory; Linux allows fewer maps than it asks for."""
    try:
        found = int(MAX_MAP_COUNT_FILE.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return
    if found < MAX_MAP_COUNT:
        yield (
            f"vm.max_map_count is {found}; Elasticsearch may need {MAX_MAP_COUNT}: "
            f"sudo sysctl -w vm.max_map_count={MAX_MAP_COUNT}"
        )


def names_taken(services: Iterable[Service], ours: Collection[Container]) -> Iterator[str]:
    """Containers of others that have a name of ours."""
    ids = {container.id[:12] for container in ours}
    others = {
        found["Names"] for found in json_lines(docker("ps", "--all", "--format", "{{json .}}").stdout)
        if found["ID"][:12] not in ids
    }  # fmt: skip
    for name in sorted({service.container for service in services} & others):
        yield f"A container named {name} is there, and not of this stack: docker rm -f {name}, if nobody needs it."


def ports_taken(services: Iterable[Service], ours: Collection[Container]) -> Iterator[str]:
    """Ports that somebody else listens on, and who that is as far as can be told."""
    own = frozenset[int]().union(*(container.ports for container in ours))
    for service in services:
        for port in service.ports:
            if port.published not in own and _is_taken(port):
                yield (
                    f"Port {port.published} (for {service.name}) is taken by {_holder(port.published)}: "
                    "end it, or choose another port in .env.local (its variable is in .env)."
                )


def _require(least: tuple[int, int], found: str, *, what: str) -> None:
    version = re.search(r"(\d+)\.(\d+)", found)
    if version is None or (int(version[1]), int(version[2])) < least:
        needed = ".".join(str(part) for part in least)
        raise StartError(f"{what} {found} is too old: {needed} or newer is needed.", exit_code=USAGE_OR_MACHINE)


def _is_taken(port: Port) -> bool:
    """A bind alone would pass, on some systems, beside a program that listens on every address."""
    address = "127.0.0.1" if port.address in ("", "0.0.0.0", "::") else port.address
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as client:
        client.settimeout(1)
        if client.connect_ex((address, port.published)) == 0:
            return True
    with socket.socket(family) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((address, port.published))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _holder(port: int) -> str:
    for found in json_lines(docker("ps", "--format", "{{json .}}").stdout):
        if re.search(rf":{port}->", found.get("Ports", "")):
            return f"the container {found['Names']}"
    return _process_on(port) or "another program"


def _process_on(port: int) -> str | None:
    """The process behind a port where Linux lets us see it; that of another user only root sees."""
    links = {link for table in SOCKET_TABLES if table.is_file() for link in _listeners(table, port)}
    for descriptor in Path("/proc").glob("[0-9]*/fd/*") if links else ():
        try:
            if str(descriptor.readlink()) in links:
                process = descriptor.parents[1]
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                return f"process {process.name} ({command[:80]})"
        except OSError:
            continue  # it ended meanwhile, or is not ours to look at
    return None


def _listeners(table: Path, port: int) -> Iterator[str]:
    for line in table.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
            yield f"socket:[{fields[9]}]"
