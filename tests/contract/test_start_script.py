"""The start script says what is in the way, waits no longer than there is hope, and tells where everything is."""

import importlib
import json
import os
import pty
import re
import shutil
import socket
import stat
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.receivers import dead_port

ROOT: Final = Path(__file__).resolve().parents[2]
GOOD_INFO: Final = {"ServerVersion": "20.10.24+dfsg1", "MemTotal": 16 * 10**9}
SECRETS: Final = ("GRAFANA_ADMIN_PASSWORD", "JUPYTER_TOKEN")
WIDE: Final = {"BIND_ADDRESS": "0.0.0.0"}


def service(name: str, *needs: str, port: int = 0, target: int = 80, **more: Any) -> dict[str, Any]:
    """A service as `docker compose config` tells it."""
    ports = [{"host_ip": "127.0.0.1", "published": str(port or dead_port()), "target": target}]
    depends = {need: {"condition": "service_started"} for need in needs}
    return {"image": f"{name}:1", "container_name": name, "ports": ports, "depends_on": depends} | more


def one_shot(name: str, *needs: str) -> dict[str, Any]:
    """A service that does one thing and ends."""
    return service(name, *needs, restart="no", ports=[])


def services() -> dict[str, dict[str, Any]]:
    """A stack with one service of each sort."""
    return {
        "owner": one_shot("owner"),
        "spark-master": service("spark-master", target=8080, build={"context": "."}),
        "jaeger": service("jaeger", "owner", target=16686),
        "kibana": service("kibana", target=5601),
        "kibana-setup": one_shot("kibana-setup", "kibana"),
        "grafana": service("grafana", target=3000),
        "jupyter": service("jupyter", "spark-master", target=8888),
    }


def container(
    name: str, state: str = "running", health: str = "healthy", code: int = 0, port: int = 0
) -> dict[str, Any]:
    """A container as `docker compose ps` tells it."""
    return {
        "ID": f"id-of-{name}-in-full",
        "Name": name,
        "Service": name,
        "State": state,
        "Health": health if state == "running" else "",
        "ExitCode": code,
        "Publishers": [{"PublishedPort": port}],
    }


def all_of(found: dict[str, dict[str, Any]], **changes: dict[str, Any]) -> list[dict[str, Any]]:
    """A container of every service, ready but for the changes."""
    made = {
        name: container(name, "exited") if content.get("restart") == "no" else container(name)
        for name, content in found.items()
    }
    return list((made | {name.replace("_", "-"): change for name, change in changes.items()}).values())


@dataclass
class Machine:
    """A machine with a project and a Docker that answers what the test says."""

    folder: Path
    state: dict[str, Any]

    @property
    def project(self) -> Path:
        """The folder of the project."""
        return self.folder / "project"

    def start(self, *options: str, checks: str = "--force", **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs the script; what this machine has too little of is no matter, unless the checks are told to count."""
        (self.folder / "state.json").write_text(json.dumps(self.state), encoding="utf-8")
        script = str(self.project / "scripts" / "start-full-stack.sh")
        command = [script, *([checks] if checks else []), *options]
        return subprocess.run(
            command, env=self.environment(**variables), capture_output=True, text=True, check=False, timeout=60,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def environment(self, **variables: str) -> dict[str, str]:
        """The environment that has this Docker, and none of our own variables of the stack."""
        own = {name: value for name, value in os.environ.items() if name not in {*SECRETS, *WIDE}}
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return own | {"PATH": path, "FAKE_DOCKER": str(self.folder)} | variables

    def calls(self, *begin: str) -> list[dict[str, Any]]:
        """What Docker was asked that begins with some words after the options of Compose."""
        path = self.folder / "calls"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines]
        for call in found:
            words = call["words"]
            call["asked"] = words[words.index("-f") + 2 :] if "-f" in words else words
        return [call for call in found if call["asked"][: len(begin)] == list(begin)]

    def env_local(self, text: str) -> Path:
        """Writes the file of secrets."""
        path = self.project / ".env.local"
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine on which nothing is in the way, with all images and no containers."""
    shutil.copytree(ROOT / "scripts", tmp_path / "project" / "scripts")
    (tmp_path / "project" / ".env").write_text("COMPOSE_PROJECT_NAME=spark-app\n", encoding="utf-8")
    (tmp_path / "bin").mkdir()
    docker = tmp_path / "bin" / "docker"
    source = (ROOT / "tests" / "contract" / "fake_docker.py").read_text(encoding="utf-8")
    docker.write_text(f"#!{sys.executable} -SE\n{source}", encoding="utf-8")  # -S and -E: it is started very often
    docker.chmod(0o755)
    found = services()
    state = {
        "info": {"out": json.dumps(GOOD_INFO)},
        "compose": {"out": "v2.24.0\n"},
        "config": {"services": found, "volumes": {"grafana": {"name": "spark-app_grafana"}}},
        "containers": [[], all_of(found)],
        "images": [content["image"] for content in found.values()],
        "volumes": [],
        "others": [],
        "cannot": [],
        "logs": {},
        "run": 0,
        "up": {},
    }
    return Machine(tmp_path, state)


def refused(done: subprocess.CompletedProcess[str], machine: Machine, *, code: int = 2) -> str:
    """What the script said when it started nothing, but for warnings about the machine that runs the test."""
    assert (done.returncode, done.stdout, machine.calls("up")) == (code, "", []), done.stderr
    return "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith("warning: "))


def test_a_first_start_ends_with_a_table(machine: Machine) -> None:
    """Service, address, state, when it was ready and where the password is; and what to type next."""
    done = machine.start()
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split("  ")[0] == "service"
    rows = {line.split()[0]: line for line in lines[1:8]}
    url = f"http://localhost:{machine.state['config']['services']['jaeger']['ports'][0]['published']}"
    assert rows["jaeger"].split()[:3] == ["jaeger", url, "up"]
    assert rows["owner"].split()[:2] == ["owner", "done"]
    assert rows["grafana"].endswith("admin / admin")
    assert rows["jupyter"].endswith("token spark-app")
    assert "docker exec spark-master run_etl.sh 2024-01-01" in done.stdout


def test_what_becomes_ready_is_told_as_it_does(machine: Machine) -> None:
    """A line each, with the seconds since the start; what is not healthy yet, or not done, is waited for."""
    found = machine.state["config"]["services"]
    starting = all_of(found, jaeger=container("jaeger", health="starting"), owner=container("owner", health=""))
    machine.state["containers"] = [[], starting, all_of(found)]
    done = machine.start()
    told = re.findall(r"^ +\d+ s  (\S+) is ready$", done.stderr, flags=re.MULTILINE)
    assert sorted(told) == sorted(found)
    assert sorted(told[-2:]) == ["jaeger", "owner"]


def test_compose_is_given_every_env_file_that_is_there(machine: Machine) -> None:
    """A plain Compose reads `.env` and never `.env.local`."""
    machine.start()
    machine.env_local("GRAFANA_ADMIN_PASSWORD=x\n")
    machine.start()
    first, second = machine.calls("up")
    assert first["words"][:5] == ["compose", "--env-file", ".env", "-f", "docker-compose.full.yml"]
    assert second["words"][1:5] == ["--env-file", ".env", "--env-file", ".env.local"]


def test_a_second_start_changes_nothing_and_says_what_was_ready(machine: Machine) -> None:
    """Our own containers are not in our own way, and nothing is built or fetched."""
    found = machine.state["config"]["services"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found["jaeger"] = service("jaeger", "owner", port=port)
        machine.state["containers"] = [all_of(found, jaeger=container("jaeger", port=port))]
        machine.state["others"] = [{"ID": f"id-of-{name}-in-full"[:12], "Names": name} for name in found]
        done = machine.start()
    assert done.returncode == 0, done.stderr
    assert [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("jaeger ")] == ["already"]
    assert (len(machine.calls("up")), machine.calls("build"), machine.calls("pull")) == (1, [], [])


def test_a_port_that_is_taken_is_told_with_who_holds_it(machine: Machine) -> None:
    """A program by its number and command line; nothing is started."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        machine.state["config"]["services"]["jaeger"] = service("jaeger", "owner", port=port)
        told = refused(machine.start(), machine)
    assert told.startswith(f"Port {port} (for jaeger) is taken by process {os.getpid()} (")
    assert told.count("\n") == 1


def test_a_port_that_a_container_holds_is_told_with_its_name(machine: Machine) -> None:
    """It is somebody else's container: Docker knows."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        machine.state["config"]["services"]["jaeger"] = service("jaeger", "owner", port=port)
        machine.state["others"] = [{"ID": "x", "Names": "my-jaeger", "Ports": f"127.0.0.1:{port}->80/tcp"}]
        told = refused(machine.start(), machine)
    assert f"Port {port} (for jaeger) is taken by the container my-jaeger: " in told


def test_all_that_is_in_the_way_is_told_at_once(machine: Machine) -> None:
    """Nobody mends one thing to be told the next: too little memory, a name and a port."""
    machine.state["info"] = {"out": json.dumps(GOOD_INFO | {"MemTotal": 4 * 10**9})}
    machine.state["others"] = [{"ID": "x", "Names": "kibana"}]
    with socket.create_server(("127.0.0.1", 0)) as server:
        machine.state["config"]["services"]["jaeger"] = service("jaeger", port=server.getsockname()[1])
        told = refused(machine.start(checks=""), machine)
    assert "Docker has 4.0 GB of memory; the stack needs 8 GB. (--force goes on all the same)\n" in told
    assert "A container named kibana is there, and not of this stack: docker rm -f kibana" in told
    assert " (for jaeger) is taken by " in told


def test_with_force_a_shortage_is_a_warning(machine: Machine) -> None:
    """Whoever knows better goes on."""
    machine.state["info"] = {"out": json.dumps(GOOD_INFO | {"MemTotal": 4 * 10**9})}
    done = machine.start()
    assert done.returncode == 0
    assert "warning: Docker has 4.0 GB of memory; the stack needs 8 GB.\n" in done.stderr


def test_a_machine_of_8_gb_has_enough(machine: Machine) -> None:
    """The kernel keeps a part, so that it reports less."""
    machine.state["info"] = {"out": json.dumps(GOOD_INFO | {"MemTotal": 8 * 10**9 - 10**8})}
    assert "of memory" not in machine.start().stderr


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"info": {"out": json.dumps({"ServerVersion": "19.03.8"})}}, "The Docker engine 19.03.8 is too old: 20.10"),
        ({"compose": {"out": "2.23.3\n"}}, "Docker Compose 2.23.3 is too old: 2.24 or newer is needed."),
        ({"compose": {"code": 1, "err": "unknown"}}, "This Docker has no Compose: install its plugin"),
        ({"info": {"code": 1, "err": "cannot connect"}}, "The Docker engine does not answer: cannot connect"),
        (
            {"info": {"out": '{"ServerErrors":["no socket"]}', "code": 1}},
            "The Docker engine does not answer: no socket",
        ),
    ],
)
def test_a_docker_that_does_not_fit_is_one_line(machine: Machine, change: dict[str, Any], told: str) -> None:
    """Missing or too old: what was found, and what is needed."""
    machine.state |= change
    said = refused(machine.start(), machine)
    assert said.startswith(told)
    assert said.count("\n") == 1


def test_no_docker_at_all_is_one_line(machine: Machine) -> None:
    """What to install, before anything else."""
    (machine.folder / "bin" / "docker").unlink()
    for tool in ("env", "bash"):
        (machine.folder / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    (machine.folder / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
    done = machine.start(PATH=str(machine.folder / "bin"))
    assert refused(done, machine) == "No Docker found: install Docker Engine and its Compose plugin.\n"


def test_an_old_python_is_one_line(machine: Machine) -> None:
    """The script needs no environment, but a Python that can read it."""
    python = machine.folder / "bin" / "python3"
    python.write_text("#!/usr/bin/env bash\nexit 1\n", encoding="utf-8")
    python.chmod(0o755)
    assert refused(machine.start(), machine).startswith("No Python 3.9 or newer found as python3: install one")


@pytest.mark.parametrize(
    ("name", "found", "told"),
    [
        ("jaeger", container("jaeger", "exited", code=137), "jaeger ended with exit code 137; its last lines:"),
        ("jaeger", container("jaeger", "restarting", code=1), "jaeger ended with exit code 1; its last lines:"),
        ("jaeger", container("jaeger", "exited", code=0), "jaeger ended with exit code 0; its last lines:"),
        ("jaeger", container("jaeger", health="unhealthy"), "jaeger is unhealthy; its last lines:"),
        ("owner", container("owner", "exited", code=1), "owner ended with exit code 1; its last lines:"),
    ],
)
def test_what_ends_badly_ends_the_wait_at_once(machine: Machine, name: str, found: dict[str, Any], told: str) -> None:
    """Though Compose would wait on: its last lines are shown, and Compose is not left behind."""
    machine.state["up"] = "hangs"
    machine.state["containers"] = [[], all_of(machine.state["config"]["services"], **{name: found})]
    machine.state["logs"] = {name: "first\nno such file: config.yaml\n"}
    done = machine.start()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-3:] == [told, "  first", "  no such file: config.yaml"]
    begun = [path.read_text(encoding="utf-8") for path in machine.folder.glob("up.pid")]
    assert [pid for pid in begun if Path("/proc", pid).exists()] == []


def test_what_was_down_before_the_start_is_no_failure_of_it(machine: Machine) -> None:
    """After `docker compose stop`, or a failure that was mended, the old end of a container tells nothing."""
    found = machine.state["config"]["services"]
    stopped = all_of(
        found, jaeger=container("jaeger", "exited", code=137), kibana=container("kibana", health="unhealthy")
    )
    machine.state["up"] = "hangs"
    machine.state["containers"] = [stopped, stopped, all_of(found, jaeger=container("jaeger", "exited", code=3))]
    machine.state["containers"].insert(2, all_of(found, jaeger=container("jaeger", health="starting")))
    done = machine.start()
    assert (done.returncode, "jaeger ended with exit code 3" in done.stderr) == (1, True)
    assert "137" not in done.stderr


def test_what_stays_down_when_compose_is_done_is_a_failure(machine: Machine) -> None:
    """Even if it was down before."""
    found = machine.state["config"]["services"]
    machine.state["containers"] = [all_of(found, jaeger=container("jaeger", "exited", code=137))]
    done = machine.start()
    assert (done.returncode, "jaeger ended with exit code 137" in done.stderr) == (1, True)


def test_what_compose_says_when_it_fails_is_shown(machine: Machine) -> None:
    """Its last lines name the cause."""
    machine.state["containers"] = [[]]
    machine.state["up"] = {"code": 1, "err": "Error: no space left on device\n"}
    done = machine.start()
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == ["docker compose up failed:", "Error: no space left on device"]


def test_time_that_is_up_names_what_is_not_ready(machine: Machine) -> None:
    """And shows its last lines."""
    found = machine.state["config"]["services"]
    machine.state["containers"] = [[], all_of(found, kibana=container("kibana", health="starting"))]
    machine.state["logs"] = {"kibana": "still migrating\n"}
    done = machine.start("--seconds", "0")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[-3:] == ["Not ready after 0 s: kibana", "kibana is starting; its last lines:", "  still migrating"]


def test_a_service_is_left_out_with_what_needs_it(machine: Machine) -> None:
    """And said to be left out, in the table."""
    machine.state["images"].remove("kibana:1")
    done = machine.start("--without", "kibana")
    assert done.returncode == 0, done.stderr
    (call,) = machine.calls("up")
    assert not {"kibana", "kibana-setup"} & set(call["words"])
    assert {"jaeger", "grafana", "owner"} <= set(call["words"])
    rows = [line.split(maxsplit=3) for line in done.stdout.splitlines() if line.startswith("kibana")]
    assert rows == [
        ["kibana", "left", "out", "asked for by --without"],
        ["kibana-setup", "left", "out", "needs kibana"],
    ]
    assert machine.calls("pull") == []


def test_a_service_that_there_is_not_cannot_be_left_out(machine: Machine) -> None:
    """The line lists those that can."""
    assert refused(machine.start("--without", "splunk"), machine).startswith("--without splunk: there are grafana, ")


def test_images_that_cannot_be_had_are_named_with_the_way_out(machine: Machine) -> None:
    """All of them at once, with the options that leave their services out."""
    machine.state |= {"images": ["spark-master:1", "owner:1", "jaeger:1", "jupyter:1"], "cannot": ["kibana", "grafana"]}
    machine.state["config"]["services"]["kibana-setup"]["image"] = "kibana:1"
    told = refused(machine.start(), machine)
    assert "kibana:1 is not here and cannot be fetched; it is needed by kibana, kibana-setup\n" in told
    assert told.endswith("Leave out what can be spared: --without kibana --without grafana\n")


@pytest.mark.parametrize("option", [(), ("--build",)])
def test_our_image_is_built_where_it_is_not_there_or_is_asked_for(machine: Machine, option: tuple[str, ...]) -> None:
    """Others are fetched; what is there is left alone."""
    machine.state["images"] = [image for image in machine.state["images"] if option or image != "spark-master:1"]
    assert machine.start(*option).returncode == 0
    assert [call["asked"] for call in machine.calls("build")] == [["build", "spark-master"]]
    assert machine.calls("pull") == []


def test_an_image_of_ours_that_cannot_be_built_ends_the_start(machine: Machine) -> None:
    """The builder has said why."""
    machine.state |= {"images": [], "cannot": ["spark-master"]}
    told = refused(machine.start(), machine, code=1)
    assert told.endswith("spark-master:1 cannot be built: the lines above say why\n")


@pytest.mark.parametrize("secrets", ["", "GRAFANA_ADMIN_PASSWORD=admin\nJUPYTER_TOKEN='spark-app'\n"])
def test_a_wide_address_without_secrets_is_refused(machine: Machine, secrets: str) -> None:
    """Those that everybody knows are none; the line says what to do, and nothing is asked of Compose."""
    machine.env_local(secrets)
    told = refused(machine.start(**WIDE), machine)
    assert told.startswith(
        f"BIND_ADDRESS=0.0.0.0 opens Grafana and Jupyter to others, and {' and '.join(SECRETS)} are not"
    )
    assert "--generate-passwords" in told
    assert machine.calls("config") == []


def test_a_wide_address_in_the_file_is_refused_too(machine: Machine) -> None:
    """Compose would read it there."""
    machine.env_local("BIND_ADDRESS=192.0.2.1\nGRAFANA_ADMIN_PASSWORD=own\n")
    assert "BIND_ADDRESS=192.0.2.1 opens Grafana and Jupyter to others, and JUPYTER_TOKEN is not" in refused(
        machine.start(), machine
    )


def test_secrets_are_made_where_only_their_owner_reads_them(machine: Machine) -> None:
    """The file keeps what it held, has mode 0600, and no secret is ever printed."""
    path = machine.env_local("# mine\nKAFKA_PORT=9192\nJUPYTER_TOKEN=spark-app\n")
    path.chmod(0o644)
    done = machine.start("--generate-passwords", **WIDE)
    assert done.returncode == 0, done.stderr
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["# mine", "KAFKA_PORT=9192"]
    made = dict(line.split("=", 1) for line in lines[2:])
    assert sorted(made) == sorted(SECRETS)
    assert min(len(value) for value in made.values()) >= 24
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [value for value in made.values() if value in done.stdout + done.stderr] == []
    assert "user admin; GRAFANA_ADMIN_PASSWORD in .env.local" in done.stdout
    assert machine.calls("up")[0]["bind"] == "0.0.0.0"


def test_whoever_sits_at_a_terminal_is_asked(machine: Machine) -> None:
    """A yes makes the secrets."""
    (machine.folder / "state.json").write_text(json.dumps(machine.state), encoding="utf-8")
    master, slave = pty.openpty()
    with subprocess.Popen(
        [machine.project / "scripts" / "start-full-stack.sh", "--force"],
        env=machine.environment(**WIDE), stdin=slave, stderr=slave, stdout=subprocess.PIPE, close_fds=True,
    ) as process:  # fmt: skip
        os.close(slave)
        told = b""
        while b"[y/N]" not in told:
            told += os.read(master, 1000)
        os.write(master, b"y\n")
        while told and process.poll() is None:
            told = _read(master)
        process.communicate()
    os.close(master)
    assert process.returncode == 0
    assert "JUPYTER_TOKEN=" in (machine.project / ".env.local").read_text(encoding="utf-8")


def _read(master: int) -> bytes:
    """What a terminal shows next; nothing once its program is gone."""
    try:
        return os.read(master, 1000)
    except OSError:
        return b""


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1", ""])
def test_the_loopback_needs_no_secret(machine: Machine, address: str) -> None:
    """Compose would want one for any address that is given, so it is given none."""
    assert machine.start(BIND_ADDRESS=address).returncode == 0
    assert {call["bind"] for call in machine.calls("up")} == {""}


def test_grafanas_volume_is_told_the_password_before_a_port_is_open(machine: Machine) -> None:
    """Grafana takes the variable at its first start only: what was admin/admin would stay so, open to others."""
    machine.env_local("GRAFANA_ADMIN_PASSWORD=own\nJUPYTER_TOKEN=own\n")
    machine.state["volumes"] = ["spark-app_grafana"]
    assert machine.start(**WIDE).returncode == 0
    order = [call["asked"][0] for call in machine.calls() if call["asked"][0] in ("run", "up")]
    assert order == ["run", "up"]
    (call,) = machine.calls("run")
    assert call["given"] == "own"
    assert "own" not in call["words"]
    assert {"--no-deps", "reset-admin-password", "--password-from-stdin"} <= set(call["words"])


def test_grafana_is_not_opened_with_a_password_that_could_not_be_set(machine: Machine) -> None:
    """On the loopback that is a warning."""
    machine.env_local("GRAFANA_ADMIN_PASSWORD=own\nJUPYTER_TOKEN=own\n")
    machine.state |= {"volumes": ["spark-app_grafana"], "run": 1}
    told = refused(machine.start(**WIDE), machine, code=1)
    assert told.startswith("the password in Grafana's volume could not be set to GRAFANA_ADMIN_PASSWORD: it stays on")
    assert "warning: the password in Grafana's volume" in machine.start().stderr


def test_a_first_start_of_grafana_takes_the_variable(machine: Machine) -> None:
    """Without a volume there is nothing to tell."""
    machine.env_local("GRAFANA_ADMIN_PASSWORD=own\nJUPYTER_TOKEN=own\n")
    assert machine.start(**WIDE).returncode == 0
    assert machine.calls("run") == []


def test_help_lists_the_options(machine: Machine) -> None:
    """Without a look at the machine."""
    done = machine.start("--help")
    assert done.returncode == 0
    assert [
        name for name in ("--without", "--build", "--force", "--generate-passwords") if name not in done.stdout
    ] == []
    assert machine.calls() == []


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the script that looks at the machine."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("full_stack.machine")


def test_too_little_disk_space_is_told(checks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Docker keeps its images, or, if that is not of this machine, where the project is."""
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(3 * 10**9 if path == tmp_path else 10**12))
    assert list(checks.shortages(GOOD_INFO | {"DockerRootDir": str(tmp_path)}, ROOT)) == [
        f"3.0 GB are free in {tmp_path}; the stack needs 10 GB for images and data."
    ]
    assert list(checks.shortages(GOOD_INFO | {"DockerRootDir": str(ROOT)}, tmp_path)) == []
    assert len(list(checks.shortages(GOOD_INFO | {"DockerRootDir": "/no/such/folder"}, tmp_path))) == 1


@pytest.mark.parametrize(("found", "told"), [("65530\n", 1), ("262144\n", 0), ("", 0)])
def test_a_low_map_count_is_told_with_the_command_that_raises_it(
    checks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: str, told: int
) -> None:
    """Elasticsearch may stumble over it; where there is no such setting, there is nothing to say."""
    path = tmp_path / "max_map_count"
    path.write_text(found, encoding="ascii")
    monkeypatch.setattr(checks, "MAX_MAP_COUNT_FILE", path)
    lines = list(checks.map_count_too_low())
    assert len(lines) == told
    assert all("sudo sysctl -w vm.max_map_count=262144" in line for line in lines)
