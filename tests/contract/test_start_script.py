"""The start script names what keeps the stack from starting, waits through Compose, and prints where everything is."""

import importlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.receivers import dead_port

ROOT: Final = Path(__file__).resolve().parents[2]
ENGINE: Final = {"ServerVersion": "20.10.24+dfsg1", "MemTotal": 16 * 10**9}
SECRETS: Final = ("GRAFANA_ADMIN_PASSWORD", "JUPYTER_TOKEN")
OPEN: Final[dict[str, Any]] = {"BIND_ADDRESS": "0.0.0.0"}
LONG_AGO: Final = "2020-01-01T00:00:00Z"
IN_THE_START: Final = "2999-01-01T00:00:00Z"


def service(name: str, *needs: str, target: int = 80, **more: Any) -> dict[str, Any]:
    """A service as `docker compose config` prints it."""
    ports = [{"host_ip": "127.0.0.1", "published": str(dead_port()), "target": target}]
    depends_on = {need: {"condition": "service_started", "required": True} for need in needs}
    return {"image": f"{name}:1", "container_name": name, "ports": ports, "depends_on": depends_on} | more


def services() -> dict[str, dict[str, Any]]:
    """A stack with one service of each sort."""
    optional = {"kibana": {"condition": "service_healthy", "required": False}}
    return {
        "owner": service("owner", restart="no", ports=[]),
        "spark-master": service("spark-master", target=8080, build={"context": "."}),
        "jaeger": service("jaeger", "owner", target=16686),
        "kibana": service("kibana", target=5601),
        "kibana-setup": service("kibana-setup", "kibana", restart="no", ports=[], image="kibana:1"),
        "grafana": service("grafana", target=3000, depends_on=optional),
        "jupyter": service("jupyter", "spark-master", target=8888, image="spark-master:1"),
    }


def container(name: str, status: str, code: int = 0, *, health: str = "", ended: str = IN_THE_START) -> dict[str, Any]:
    """A container as `docker inspect` prints it."""
    state = {"Status": status, "ExitCode": code, "FinishedAt": ended, "Health": {"Status": health}}
    return {"Name": f"/{name}", "State": state if health else {**state, "Health": {}}, "RestartCount": 0}


@dataclass
class Machine:
    """A machine with a copy of the scripts and a Docker that answers what the test says."""

    folder: Path
    state: dict[str, Any]

    @property
    def services(self) -> dict[str, dict[str, Any]]:
        """The services of the stack."""
        found: dict[str, dict[str, Any]] = self.state["config"]["services"]
        return found

    def start(self, *options: str, force: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs the script; with force, the real machine's memory and disk do not matter."""
        (self.folder / "calls").write_text("", encoding="utf-8")
        (self.folder / "state.json").write_text(json.dumps(self.state), encoding="utf-8")
        own = {name: value for name, value in os.environ.items() if name not in {*SECRETS, *OPEN}}
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [self.folder / "scripts" / "start-full-stack.sh", *(["--force"] if force else []), *options],
            env=own | {"PATH": path, "FAKE_DOCKER": str(self.folder)} | variables,
            capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def refusal(self, *options: str, code: int = 2, force: bool = True, **variables: str) -> str:
        """Runs the script, which starts nothing; returns what it says, without warnings about the real machine."""
        done = self.start(*options, force=force, **variables)
        assert (done.returncode, done.stdout, self.calls("up")) == (code, "", []), done.stderr
        return "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith("warning: "))

    def calls(self, *commands: str) -> list[dict[str, Any]]:
        """The calls of these commands of Docker and Compose."""
        lines = (self.folder / "calls").read_text(encoding="utf-8").splitlines()
        return [call for call in map(json.loads, lines) if call["words"][0] in commands]

    def env_local(self, text: str) -> Path:
        """Writes `.env.local`."""
        path = self.folder / ".env.local"
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine on which nothing keeps the stack from starting, with all images and no containers."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / ".env").write_text("COMPOSE_PROJECT_NAME=spark-app\n", encoding="utf-8")
    (tmp_path / "bin").mkdir()
    docker = tmp_path / "bin" / "docker"
    source = (ROOT / "tests" / "contract" / "fake_docker.py").read_text(encoding="utf-8")
    docker.write_text(f"#!{sys.executable} -SE\n{source}", encoding="utf-8")
    docker.chmod(0o755)
    (tmp_path / "bin" / "python3").symlink_to(Path(sys.executable).resolve())  # no shim of a version manager
    config = {"name": "spark-app", "services": services(), "volumes": {"grafana": {"name": "spark-app_grafana"}}}
    images = sorted({each["image"] for each in config["services"].values()})  # type: ignore[attr-defined]
    state = {"info": {"out": json.dumps(ENGINE)}, "compose": {"out": "v2.24.0\n"}, "config": config, "images": images}
    state |= {"volumes": [], "registry": [], "logs": {}, "ps": {}, "run": {}, "up": {}, "container": {"out": "[]"}}
    return Machine(tmp_path, state)


@contextmanager
def listener(machine: Machine, name: str) -> Iterator[int]:
    """A program that listens on the port of a service."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        machine.services[name]["ports"][0]["published"] = str(port)
        yield port


def test_start_runs_compose_and_prints_the_table(machine: Machine) -> None:
    """Compose gets every service, builds and pulls what is missing, and waits; the table follows."""
    machine.env_local("KAFKA_PORT=9192\n")
    machine.state |= {"images": ["owner:1"], "registry": list(services())}
    done = machine.start("--without", "kibana", "--seconds", "99")
    assert done.returncode == 0, done.stderr
    assert [call["words"] for call in machine.calls("build", "pull")] == [
        ["build", "spark-master"], ["pull", "--ignore-pull-failures", "jaeger", "grafana"],
    ]  # fmt: skip
    (up,) = machine.calls("up")
    assert up["options"] == ["compose", "-f", "docker-compose.full.yml"], "a plain command has the same variables"
    options, started = up["words"][1:-5], up["words"][-5:]
    assert options == ["--detach", "--no-build", "--no-deps", "--wait", "--wait-timeout", "99"]
    assert started == ["owner", "spark-master", "jaeger", "grafana", "jupyter"]
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in done.stdout.splitlines() if line}
    ports = {name: each["ports"][0]["published"] for name, each in machine.services.items() if each["ports"]}
    assert (rows["owner"], rows["jaeger"]) == ("done", f"http://localhost:{ports['jaeger']} up")
    assert rows["grafana"] == f"http://localhost:{ports['grafana']} up admin / admin"
    assert rows["jupyter"].endswith("up token spark-app")
    assert (rows["kibana"], rows["kibana-setup"]) == ("left out --without", "left out needs kibana")
    assert "docker exec spark-master run_etl.sh 2024-01-01" in done.stdout


def test_running_stack_is_not_in_its_own_way(machine: Machine) -> None:
    """Its containers hold the ports; nothing is built or pulled, and a shortage is a warning only."""
    machine.state["info"] = {"out": json.dumps(ENGINE | {"MemTotal": 4 * 10**9})}
    with listener(machine, "jaeger") as port:
        own = {
            "Names": "jaeger",
            "Ports": f"127.0.0.1:{port - 1}-{port}->80-81/tcp",
            "Labels": "a=b,com.docker.compose.project=spark-app",
        }
        machine.state["ps"] = {"out": json.dumps(own)}
        done = machine.start(force=False)
    assert done.returncode == 0, done.stderr
    assert "warning: Docker has 4.0 GB of memory; the stack needs 8 GB.\n" in done.stderr
    assert (len(machine.calls("up")), machine.calls("build", "pull")) == (1, [])


def test_all_that_is_in_the_way_is_reported_at_once(machine: Machine) -> None:
    """Too little memory, a port of a process and a port of a container, each with its holder; nothing starts."""
    machine.state["info"] = {"out": json.dumps(ENGINE | {"MemTotal": 4 * 10**9})}
    other = {"Names": "my-kibana", "Ports": f"0.0.0.0:{machine.services['kibana']['ports'][0]['published']}->80/tcp"}
    machine.state["ps"] = {"out": json.dumps(other)}
    with listener(machine, "jaeger") as port:
        lines = machine.refusal(force=False).splitlines()
    memory, by_process, by_container = [line for line in lines if "are free in" not in line]
    assert memory == "Docker has 4.0 GB of memory; the stack needs 8 GB. (--force starts it anyway)"
    assert by_process.startswith(f"Port {port} (for jaeger) is taken by process {os.getpid()} (")
    assert " (for kibana) is taken by the container my-kibana: stop it, or set another port" in by_container


def test_unusable_docker_or_python_is_one_line(machine: Machine) -> None:
    """Missing or too old: the line says what was found and what is needed."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"info": {"out": '{"ServerVersion": "19.03.8"}'}}, "The Docker engine 19.03.8 is too old: 20.10 or newer"),
        ({"compose": {"out": "2.23.3\n"}}, "Docker Compose 2.23.3 is too old: 2.24 or newer is needed."),
        ({"compose": {"code": 1, "err": "unknown"}}, "This Docker has no Compose: install its plugin"),
        ({"info": {"code": 1, "err": "cannot connect"}}, "The Docker engine does not answer: cannot connect"),
        (
            {"info": {"code": 1, "out": '{"ServerErrors":["no socket"]}'}},
            "The Docker engine does not answer: no socket",
        ),
    ]
    good = dict(machine.state)
    refusals = []
    for change, _ in cases:
        machine.state = good | change
        refusals.append(machine.refusal())
    (machine.folder / "bin" / "docker").unlink()
    for tool in ("env", "bash"):
        (machine.folder / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    refusals.append(machine.refusal(PATH=str(machine.folder / "bin")))
    python = machine.folder / "bin" / "python3"
    python.unlink()
    python.symlink_to(shutil.which("false") or "false")
    refusals.append(machine.refusal())
    expected = [said for _, said in cases] + ["No Docker found: install", "No Python 3.9 or newer found as python3: "]
    assert [said[: len(start)] for said, start in zip(refusals, expected, strict=True)] == expected
    assert [said.count("\n") for said in refusals] == [1] * len(refusals)


def test_failed_container_is_reported_with_its_last_lines(machine: Machine) -> None:
    """Compose names no cause. What only waits, or ended before this start, is not reported."""
    waiting = [container("kibana", "running", health="starting"), container("grafana", "exited", 137, ended=LONG_AGO)]
    done_one_shot = container("owner", "exited")
    crashing = container("jaeger", "running", 2, health="starting") | {"RestartCount": 3}
    cases = {
        "jaeger ended with exit code 137": container("jaeger", "exited", 137),
        "jaeger ended with exit code 0": container("jaeger", "exited", 0),
        "jaeger ended with exit code 1": container("jaeger", "restarting", 1),
        "jaeger is unhealthy": container("jaeger", "running", health="unhealthy"),
        "jaeger was restarted 3 times": crashing,
        "owner ended with exit code 1": container("owner", "exited", 1),
    }
    machine.state |= {"up": {"code": 1, "err": "dependency failed to start\n"}}
    machine.state["logs"] = dict.fromkeys(("jaeger", "owner"), "first\nno such file: config.yaml\n")
    reports = {}
    for case, failed in cases.items():
        others = [done_one_shot] if failed["Name"] != "/owner" else []
        machine.state["container"] = {"out": json.dumps([*waiting, *others, failed]), "code": 1}
        done = machine.start()
        assert (done.returncode, done.stdout) == (1, "")
        reports[case] = done.stderr.partition("dependency failed to start\n")[2].splitlines()
    lines = ["  first", "  no such file: config.yaml"]
    assert reports == {case: [f"{case}; its last lines:", *lines] for case in cases}


def test_what_is_not_healthy_in_time_is_reported(machine: Machine) -> None:
    """Where no container failed, those that are still starting are the reason; where none is, Compose has said why."""
    machine.state["up"] = {"code": 1, "err": "application not healthy after 7m0s\n"}
    machine.state["logs"] = {"kibana": "migrating\n"}
    machine.state["container"] = {"out": json.dumps([container("kibana", "running", health="starting")])}
    assert machine.start().stderr.splitlines()[-2:] == ["kibana is starting; its last lines:", "  migrating"]
    machine.state["container"] = {"out": "[]"}
    assert machine.start().stderr.endswith("docker compose up failed; the lines above say why.\n")


def test_image_that_cannot_be_had_is_reported_with_the_way_out(machine: Machine) -> None:
    """Every image that cannot be pulled with the services to leave out; our own that cannot be built ends the start."""
    machine.state["images"] = ["spark-master:1", "owner:1"]
    machine.state["registry"] = ["jaeger"]
    assert machine.refusal().splitlines() == [
        "kibana:1 cannot be pulled; needed by kibana, kibana-setup.",
        "grafana:1 cannot be pulled; needed by grafana.",
        "To start without them: scripts/start-full-stack.sh --without kibana --without grafana",
    ]
    assert machine.refusal("--build", code=1) == "Cannot build spark-master:1; the lines above say why.\n"
    said = machine.refusal("--without", "splunk")
    assert said.startswith("--without splunk: no such service; there are grafana, jaeger, ")


def test_open_address_needs_secrets(machine: Machine) -> None:
    """From the shell or `.env.local`; a default is no secret, and Compose is not asked."""
    refusals = []
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        ("", OPEN),
        ("GRAFANA_ADMIN_PASSWORD=admin\nJUPYTER_TOKEN='spark-app'\n", OPEN),
        ("BIND_ADDRESS=192.0.2.1\nGRAFANA_ADMIN_PASSWORD=own\n", {}),
    )
    for text, variables in cases:
        machine.env_local(text)
        refusals.append(machine.refusal(**variables))
        assert machine.calls("config") == []
    ways = "in .env.local, or let --generate-passwords set it.\n"
    both = f"BIND_ADDRESS=0.0.0.0 opens Grafana and Jupyter to others: set {' and '.join(SECRETS)} {ways}"
    assert refusals == [
        both, both, f"BIND_ADDRESS=192.0.2.1 opens Grafana and Jupyter to others: set JUPYTER_TOKEN {ways}",
    ]  # fmt: skip
    assert (
        "The shell sets GRAFANA_ADMIN_PASSWORD and JUPYTER_TOKEN to a default"
        in machine.refusal("--generate-passwords", GRAFANA_ADMIN_PASSWORD="admin", **OPEN)
        or machine.env_local("").stat()
    )


def test_variable_without_effect_is_refused(machine: Machine) -> None:
    """Compose reads `.env` before `.env.local`."""
    machine.env_local("COMPOSE_PROJECT_NAME=mine\nKAFKA_PORT=9192\n")
    ways = "which Compose takes from .env: set it in the shell.\n"
    assert machine.refusal() == f".env.local sets COMPOSE_PROJECT_NAME, {ways}"


def test_generated_secrets_are_private(machine: Machine) -> None:
    """The file keeps its other lines and gets mode 0600; no secret is printed."""
    path = machine.env_local("# mine\nKAFKA_PORT=9192\nJUPYTER_TOKEN=spark-app\n")
    path.chmod(0o644)
    done = machine.start("--generate-passwords", **OPEN)
    assert done.returncode == 0, done.stderr
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["# mine", "KAFKA_PORT=9192"]
    generated = dict(line.split("=", 1) for line in lines[2:])
    assert sorted(generated) == sorted(SECRETS)
    assert min(len(value) for value in generated.values()) >= 24
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [value for value in generated.values() if value in done.stdout + done.stderr] == []
    assert "user admin: GRAFANA_ADMIN_PASSWORD in .env.local" in done.stdout
    assert machine.calls("up")[0]["bind"] == "0.0.0.0"


def test_loopback_needs_no_secret(machine: Machine) -> None:
    """The compose file asks for one if any address is set, so none is passed on."""
    for address in ("localhost", "::1"):
        assert machine.start(BIND_ADDRESS=address).returncode == 0
        assert [call["bind"] for call in machine.calls("up")] == [""]


def test_grafana_password_is_in_its_volume_before_a_port_is_open(machine: Machine) -> None:
    """Grafana reads the variable at its first start only; if the volume cannot be changed, Grafana is not opened."""
    machine.env_local("GRAFANA_ADMIN_PASSWORD=own\nJUPYTER_TOKEN=own\n")
    assert machine.start(**OPEN).returncode == 0
    assert machine.calls("run") == [], "a first start takes the variable"
    machine.state["volumes"] = ["spark-app_grafana"]
    assert machine.start(**OPEN).returncode == 0
    run, up = machine.calls("run", "up")
    assert (run["stdin"], "own" in run["words"], up["words"][0]) == ("own", False, "up")
    assert {"--no-deps", "reset-admin-password", "--password-from-stdin"} <= set(run["words"])
    machine.state["run"] = {"code": 1}
    said = machine.refusal(code=1, **OPEN)
    assert said == "Cannot write GRAFANA_ADMIN_PASSWORD to Grafana's volume, so Grafana is not opened to others.\n"
    done = machine.start()
    assert (done.returncode, "warning: Cannot write GRAFANA_ADMIN_PASSWORD" in done.stderr) == (0, True)


def test_help_lists_every_option_without_docker(machine: Machine) -> None:
    """Nobody needs a working Docker to read it."""
    done = machine.start("--help")
    options = ("--without", "--build", "--force", "--generate-passwords", "--seconds")
    assert (done.returncode, [name for name in options if name not in done.stdout]) == (0, [])
    assert (machine.folder / "calls").read_text(encoding="utf-8") == ""


def test_disk_and_map_count_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disk space is that of Docker's folder, or of the project where Docker has a virtual machine."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    preflight = importlib.import_module("preflight")
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(3 * 10**9 if path == tmp_path else 10**12))
    short = [f"3.0 GB are free in {tmp_path}; the stack needs 10 GB for images and data."]
    assert list(preflight.shortages(ENGINE | {"DockerRootDir": str(tmp_path)}, ROOT)) == short
    assert list(preflight.shortages(ENGINE | {"DockerRootDir": "/no/such/folder"}, tmp_path)) == short
    assert list(preflight.shortages(ENGINE | {"DockerRootDir": str(ROOT)}, tmp_path)) == []
    monkeypatch.setattr(preflight, "MAX_MAP_COUNT_FILE", tmp_path / "max_map_count")
    warnings = []
    for count in ("65530\n", "262144\n", ""):
        (tmp_path / "max_map_count").write_text(count, encoding="ascii")
        warnings.append(list(preflight.map_count_warnings()))
    assert [len(lines) for lines in warnings] == [1, 0, 0]
    assert "sudo sysctl -w vm.max_map_count=262144" in warnings[0][0]
