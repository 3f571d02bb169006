"""A folder with the start script and a small stack of busybox containers, for a real Docker engine to start."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.polling import patience
from tests.receivers import dead_port

ROOT: Final = Path(__file__).resolve().parents[2]
PINS: Final = (ROOT / ".env").read_text(encoding="utf-8").splitlines()
BUSYBOX: Final = next(line.partition("=")[2] for line in PINS if line.startswith("BUSYBOX_IMAGE="))
NOT_OURS: Final = (
    "BIND_ADDRESS",
    "GRAFANA_ADMIN_PASSWORD",
    "JUPYTER_TOKEN",
    "SPARK_DRIVER_PORT",
    "COMPOSE_PROJECT_NAME",
)
GRAFANA: Final = """#!/bin/sh
test ! -e /var/lib/grafana/is-broken || exit 1
busybox cat >/var/lib/grafana/password
echo "$@" >/var/lib/grafana/words
"""
"""In the place of Grafana's own program, whose image cannot be had everywhere: writes what it gets to its volume."""


@dataclass
class Machine:
    """A folder with the scripts and a stack of its own.

    Attributes:
        folder: The project's folder.
        project: The name of the Compose project, of the image that it builds, and of its containers before a hyphen.
        services: The services of its compose file.
    """

    folder: Path
    project: str
    services: dict[str, dict[str, Any]]

    def port(self, service: str) -> int:
        """The first port of a service."""
        return int(self.services[service]["ports"][0].split(":")[1])

    def write(self, name: str, text: str) -> Path:
        """Writes a file of the project."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def env_local(self, *lines: str) -> Path:
        """Writes `.env.local`."""
        return self.write(".env.local", "".join(f"{line}\n" for line in lines))

    def start(self, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs the script; the memory and the disk of the machine do not matter."""
        return subprocess.run(
            self._command(options), cwd=self.folder, env=environment() | variables, capture_output=True, text=True,
            check=False, timeout=patience(120), stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def starting(self, *options: str) -> subprocess.Popen[str]:
        """The same while it runs; output and errors are one."""
        return subprocess.Popen(
            self._command(options), cwd=self.folder, env=environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def _command(self, options: Iterable[str]) -> list[str]:
        self.write("compose/stack.yml", json.dumps({"services": self.services, "volumes": {"grafana": {}}}))
        return ["scripts/start-full-stack.sh", "--force", "--no-sample", *options]

    def started(self, *options: str, **variables: str) -> dict[str, str]:
        """Runs the script, which succeeds; returns the rows of its table by service."""
        done = self.start(*options, **variables)
        assert done.returncode == 0, done.stderr
        table = done.stdout.partition("\n\n")[0].splitlines()
        return {line.split()[0]: " ".join(line.split()[1:]) for line in table}

    def refusal(self, *options: str, code: int = 2, **variables: str) -> str:
        """Runs the script, which changes no container; returns what it says, without warnings about the machine."""
        before = self.containers()
        done = self.start(*options, **variables)
        assert (done.returncode, done.stdout, self.containers()) == (code, "", before), done.stderr
        return "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith("warning: "))

    def containers(self) -> dict[str, str]:
        """The ids of its containers by their names without the project."""
        listing = ["ps", "--all", "--no-trunc", "--format", "{{.Names}} {{.ID}}"]
        lines = docker(*listing, "--filter", f"label=com.docker.compose.project={self.project}").splitlines()
        return {name.removeprefix(f"{self.project}-"): id_ for name, id_ in map(str.split, lines)}

    def variables(self, service: str) -> list[str]:
        """The environment of a container."""
        [content] = json.loads(docker("container", "inspect", f"{self.project}-{service}"))
        variables: list[str] = content["Config"]["Env"]
        return variables

    def compose(self, *words: str) -> str:
        """The output of plain `docker compose`."""
        command = ["docker", "compose", "-f", "docker-compose.full.yml", *words]
        done = subprocess.run(command, cwd=self.folder, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def machine(folder: Path, project: str) -> Iterator[Machine]:
    """A machine without a container, a volume or the image of the project; the port of drivers is a free one."""
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    (folder / "compose").mkdir()
    (folder / "compose" / ".env").symlink_to("../.env.local")
    machine = Machine(folder, project, services(project))
    machine.write(".env", f"COMPOSE_PROJECT_NAME={project}\n")
    machine.env_local(f"SPARK_DRIVER_PORT={dead_port()}")
    machine.write("docker-compose.full.yml", f"name: {project}\ninclude: [compose/stack.yml]\n")
    machine.write("Dockerfile", f"FROM {BUSYBOX}\nCOPY grafana /bin/grafana\n")
    machine.write("grafana", GRAFANA).chmod(0o755)
    try:
        yield machine
    finally:
        machine.compose("down", "--volumes", "--remove-orphans", "--timeout", "0")
        subprocess.run(["docker", "image", "rm", "--force", f"{project}:1"], capture_output=True, check=False)


def services(project: str) -> dict[str, dict[str, Any]]:
    """One service of each sort; as in our stack, the first user of the image that is built does not build it."""
    daemon = {"image": f"{project}:1", "init": True, "restart": "unless-stopped", "command": ["sleep", "3600"]}
    one_shot = daemon | {"restart": "no", "command": ["true"]}
    driver = "127.0.0.1:${SPARK_DRIVER_PORT:-4040}:${SPARK_DRIVER_PORT:-4040}"
    bound = {"environment": {"BIND_ADDRESS": "${BIND_ADDRESS:-}"}, "volumes": ["grafana:/var/lib/grafana"]}
    started = {"condition": "service_started"}
    optional = {"condition": "service_completed_successfully", "required": False}
    known = {
        "grafana": daemon | bound | published(3000),
        "jaeger": daemon | published(16686) | {"depends_on": {"owner": optional | {"required": True}}},
        "jupyter": daemon | published(8888) | {"depends_on": {"spark-master": started, "kibana-setup": optional}},
        "kibana": daemon | published(5601),
        "kibana-setup": one_shot | {"depends_on": {"kibana": started}},
        "owner": one_shot,
        "spark-master": daemon | {"build": "..", "ports": [*published(8080)["ports"], driver]},
    }
    return {name: {**service, "container_name": f"{project}-{name}"} for name, service in known.items()}


def published(target: int) -> dict[str, Any]:
    """A port of a container, at a free port of this machine."""
    return {"ports": [f"127.0.0.1:{dead_port()}:{target}"]}


def environment() -> dict[str, str]:
    """The variables of this process without those of another stack."""
    return {name: value for name, value in os.environ.items() if name not in NOT_OURS}


def docker(*words: str) -> str:
    """The output of `docker`."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"docker {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()
