"""The start script starts, on a real Docker engine, what it can, and names what keeps the rest from starting."""

import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.doctor import containers
from tests.receivers import dead_port
from tests.stack.machines import BUSYBOX, Machine, docker, machine

SECRETS: Final = ("GRAFANA_ADMIN_PASSWORD", "JUPYTER_TOKEN")
OPEN: Final[dict[str, Any]] = {"BIND_ADDRESS": "0.0.0.0"}
"""No port of these stacks follows it: they listen on the loopback only."""
EVERYTHING: Final = {"grafana", "jaeger", "jupyter", "kibana", "kibana-setup", "owner", "spark-master"}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Machine]:
    """A machine on which nothing of the project exists: no image, no volume, no container."""
    with machine(tmp_path, f"start-test-{os.getpid()}") as fresh:
        yield fresh


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine on which the stack runs."""
    with machine(tmp_path_factory.mktemp("running"), f"start-test-running-{os.getpid()}") as running:
        running.started()
        yield running


def listener(port: int = 0) -> socket.socket:
    """A program that listens."""
    return socket.create_server(("127.0.0.1", port))


def test_the_first_start_builds_the_image_and_prints_the_table(fresh: Machine) -> None:
    """Of a machine that has none: Compose builds nothing for a service that only uses the image."""
    rows = fresh.started("--without", "kibana,grafana", "--seconds", "99")
    assert set(fresh.containers()) == EVERYTHING - {"kibana", "kibana-setup", "grafana"}
    assert (rows["owner"], rows["jaeger"]) == ("done", f"http://localhost:{fresh.port('jaeger')} up")
    assert rows["jupyter"] == f"http://localhost:{fresh.port('jupyter')} up token spark-app"
    left_out = {name: row for name, row in rows.items() if row.startswith("left out")}
    assert left_out == {
        "kibana": "left out --without", "grafana": "left out --without", "kibana-setup": "left out needs kibana",
    }  # fmt: skip


def test_an_image_is_built_though_the_service_that_builds_it_is_left_out(fresh: Machine) -> None:
    """`--without` takes names with commas, and several times."""
    assert "needs spark-master" in fresh.started("--without", "spark-master", "--without", "kibana, grafana")["jupyter"]
    assert set(fresh.containers()) == {"jaeger", "owner"}


def test_a_project_is_built_into_the_image_after_the_image_is_built(
    fresh: Machine, request: pytest.FixtureRequest
) -> None:
    """Also where no service that is started uses the image itself; `--build` builds the project anew."""
    image, base = f"{fresh.project}:1-project", f"{fresh.project}:1"
    request.addfinalizer(lambda: docker("image", "rm", "--force", image))
    (fresh.folder / "own").mkdir()
    fresh.write("own/Dockerfile", "ARG SPARK_APP_IMAGE\nFROM ${SPARK_APP_IMAGE}\nCOPY mine /mine\n")
    fresh.write("own/mine", "first\n")
    build = {"context": "../own", "args": {"SPARK_APP_IMAGE": base}}
    container = f"{fresh.project}-a-worker"
    fresh.services["a-worker"] = fresh.services["kibana"] | {
        "image": image, "build": build, "container_name": container, "ports": [],
    }  # fmt: skip
    without = ("--without", ",".join(EVERYTHING))
    assert fresh.started(*without)["a-worker"] == "up"
    assert docker("exec", container, "cat", "/mine", "/bin/grafana").startswith("first\n#!/bin/sh")
    fresh.write("own/mine", "second\n")
    fresh.started(*without, "--build")
    assert docker("exec", container, "cat", "/mine") == "second"


def test_a_one_shot_runs_without_the_service_that_waits_for_it(fresh: Machine) -> None:
    """Compose takes its end for a failure then; that of one with an error is one."""
    without = ("--without", "grafana,jaeger,jupyter")
    rows = fresh.started(*without)
    assert (rows["owner"], rows["kibana-setup"]) == ("done", "done")
    fresh.services["kibana-setup"]["command"] = ["sh", "-c", "echo no such index; exit 3"]
    name = f"{fresh.project}-kibana-setup"
    done = fresh.start(*without)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-2:] == [f"{name} ended with exit code 3; its last lines:", "  no such index"]


def test_a_running_stack_is_not_in_its_own_way(running: Machine) -> None:
    """Its containers hold the ports; nothing is built, replaced or stopped, by plain Compose neither."""
    before, image = running.containers(), docker("image", "inspect", "--format", "{{.Id}}", f"{running.project}:1")
    assert set(before) == EVERYTHING
    assert running.started()["grafana"].endswith("up admin / admin")
    running.compose("up", "--detach", "--wait", "jaeger", "spark-master")
    assert running.containers() == before
    assert docker("image", "inspect", "--format", "{{.Id}}", f"{running.project}:1") == image
    assert containers.services(running.project) == EVERYTHING, "what the doctor knows of them"


def test_all_that_is_in_the_way_is_reported_at_once(fresh: Machine) -> None:
    """A port of a process and one of a container, each with its holder; nothing starts."""
    other = f"{fresh.project}-other"
    docker("run", "--detach", "--rm", "--init", "--name", other, "--publish", f"127.0.0.1:{fresh.port('kibana')}:80",
           BUSYBOX, "sleep", "60")  # fmt: skip
    try:
        with closing(listener(fresh.port("jaeger"))):
            by_process, by_container = fresh.refusal().splitlines()
    finally:
        docker("kill", other)
    assert by_process.startswith(f"Port {fresh.port('jaeger')} (for jaeger) is taken by process {os.getpid()} (")
    assert f" (for kibana) is taken by the container {other}: stop it, or set another port" in by_container


def test_a_taken_port_of_drivers_does_not_stop_the_stack(fresh: Machine) -> None:
    """Any other Spark has it. The next free one is taken and said, and later commands know it, plain Compose too."""
    with closing(listener()) as other:
        port = other.getsockname()[1]
        fresh.env_local("# mine", f"SPARK_DRIVER_PORT={port} # a driver", "KAFKA_PORT=9192")
        shell = fresh.refusal("--without", "grafana,kibana,jaeger", SPARK_DRIVER_PORT=str(port))
        assert shell.startswith(f"Port {port} (for spark-master) is taken by process"), "the shell has the last word"
        done = fresh.start("--without", "grafana,kibana,jaeger")
        assert done.returncode == 0, done.stderr
        [line] = [line for line in done.stderr.splitlines() if line.startswith("Port ")]
        moved = int(re.fullmatch(r"Port \d+ is taken by process .*: the web UI of a driver gets (\d+) \(.*", line)[1])  # type: ignore[index]
        assert port < moved < port + 16
        assert f"http://localhost:{moved} (while a job runs)" in done.stdout
        lines = (fresh.folder / ".env.local").read_text(encoding="utf-8").splitlines()
        assert lines == ["# mine", "KAFKA_PORT=9192", f"SPARK_DRIVER_PORT={moved}"]
        assert docker("port", f"{fresh.project}-spark-master", str(moved)) == f"127.0.0.1:{moved}"
        before = fresh.containers()
        assert "gets" not in fresh.start("--without", "grafana,kibana,jaeger").stderr
        fresh.compose("up", "--detach", "spark-master")
        assert fresh.containers() == before


def test_a_port_of_drivers_may_be_taken_while_the_image_is_built(fresh: Machine) -> None:
    """That takes minutes, in which another Spark may start."""
    fresh.write("Dockerfile", f"FROM {BUSYBOX}\nRUN sleep 5\n")
    fresh.env_local(f"SPARK_DRIVER_PORT={(port := dead_port())}")
    with fresh.starting("--without", "grafana,kibana,jaeger") as script:
        assert script.stdout is not None
        said = next(line for line in script.stdout if "Building" in line or "Step 1" in line)
        with closing(listener(port)):
            said += script.stdout.read()
    assert script.returncode == 0, said
    assert f"Port {port} is taken by process" in said


def test_a_failed_container_is_reported_with_its_last_lines(fresh: Machine) -> None:
    """Compose names no cause. What only waits for it, or ended before this start, is not reported."""
    without = ("--without", "grafana,kibana,spark-master")
    fresh.started(*without)
    fresh.compose("kill", "jaeger")
    failing = ["sh", "-c", "echo first; echo no such file: config.yaml >&2; sleep 1; exit 7"]
    fresh.services["owner"]["command"] = failing
    done = fresh.start(*without)
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert [line for line in lines if line.endswith("; its last lines:")] == [
        f"{fresh.project}-owner ended with exit code 7; its last lines:"
    ]
    assert sorted(lines[-2:]) == ["  first", "  no such file: config.yaml"]
    fresh.services["owner"]["command"] = ["true"]
    fresh.services["jaeger"]["command"] = failing
    fresh.services["jaeger"]["healthcheck"] = {"test": ["CMD", "false"], "interval": "20s"}
    report = fresh.start(*without, "--seconds", "6").stderr
    state = rf"^{fresh.project}-jaeger (ended with exit code 7|was restarted \d+ times); its last lines:$"
    assert re.search(state, report, re.MULTILINE)
    assert "\n  no such file: config.yaml\n" in report


def test_what_is_not_healthy_is_reported(fresh: Machine) -> None:
    """A container that is unhealthy; where none failed, the one that is still starting when the time is over."""
    without = ("--without", "grafana,kibana,spark-master")
    unwell = {"test": ["CMD", "false"], "interval": "1s", "retries": 1}
    fresh.services["jaeger"] |= {"healthcheck": unwell, "command": ["sh", "-c", "echo migrating; sleep 3600"]}
    name = f"{fresh.project}-jaeger"
    assert fresh.start(*without).stderr.splitlines()[-2:] == [f"{name} is unhealthy; its last lines:", "  migrating"]
    fresh.services["jaeger"]["healthcheck"] = unwell | {"start_period": "1h"}
    done = fresh.start(*without, "--seconds", "3")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-2:] == [f"{name} is starting; its last lines:", "  migrating"]


def test_an_image_that_cannot_be_had_is_reported_with_the_way_out(fresh: Machine) -> None:
    """All of them, before minutes are spent on a build; our own that cannot be built ends the start."""
    for name in ("kibana", "kibana-setup", "jaeger"):
        fresh.services[name]["image"] = f"localhost:1/{name.partition('-')[0]}:1"
    assert fresh.refusal("--without", "grafana").splitlines()[-3:] == [
        "localhost:1/jaeger:1 cannot be pulled; needed by jaeger.",
        "localhost:1/kibana:1 cannot be pulled; needed by kibana, kibana-setup.",
        "To start without them: scripts/start-full-stack.sh --without grafana,jaeger,kibana",
    ]
    fresh.write("Dockerfile", f"FROM {BUSYBOX}\nRUN false\n")
    report = fresh.refusal("--without", "jaeger,kibana", code=1)
    assert report.endswith(f"Cannot build {fresh.project}:1; the lines above say why.\n")
    report = fresh.refusal("--without", "splunk")
    assert report.startswith("--without splunk: no such service; there are grafana, jaeger, ")


def test_an_engine_that_does_not_answer_is_one_line(fresh: Machine, tmp_path: Path) -> None:
    """And so is a Docker whose Compose does not run."""
    done = fresh.start(DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("The Docker engine does not answer: ")
    plugins = tmp_path / "cli" / "cli-plugins"
    plugins.mkdir(parents=True)
    (plugins / "docker-compose").symlink_to("/bin/false")
    done = fresh.start(DOCKER_CONFIG=str(plugins.parent))
    line = "This Docker has no Compose: install its plugin (docker-compose-plugin).\n"
    assert (done.returncode, done.stderr) == (2, line)


def test_an_open_address_needs_secrets(fresh: Machine) -> None:
    """From the shell or `.env.local`; a default is no secret."""
    refusals = []
    cases: tuple[tuple[list[str], dict[str, Any]], ...] = (
        ([], OPEN),
        (["GRAFANA_ADMIN_PASSWORD=admin", "JUPYTER_TOKEN='spark-app' # mine"], OPEN),
        (["BIND_ADDRESS=192.0.2.1", "GRAFANA_ADMIN_PASSWORD=own"], {}),
    )
    for lines, variables in cases:
        fresh.env_local(*lines)
        refusals.append(fresh.refusal(**variables))
    ways = "in .env.local, or let --generate-passwords set it.\n"
    both = f"BIND_ADDRESS=0.0.0.0 opens Grafana and Jupyter to others: set {' and '.join(SECRETS)} {ways}"
    one = f"BIND_ADDRESS=192.0.2.1 opens Grafana and Jupyter to others: set JUPYTER_TOKEN {ways}"
    assert refusals == [both, both, one]
    line = fresh.refusal("--generate-passwords", GRAFANA_ADMIN_PASSWORD="admin", **OPEN)
    assert line.startswith("The shell sets GRAFANA_ADMIN_PASSWORD and JUPYTER_TOKEN to a default") or "JUPYTER" in line
    fresh.env_local("COMPOSE_PROJECT_NAME=mine", "KAFKA_PORT=9192")
    assert fresh.refusal() == (
        ".env.local sets COMPOSE_PROJECT_NAME, which Compose takes from .env: set it in the shell.\n"
    )


def test_generated_secrets_are_private(running: Machine) -> None:
    """The file keeps its other lines and gets mode 0600; no secret is printed. Of the loopback none is asked."""
    own = (running.folder / ".env.local").read_text(encoding="utf-8").splitlines()
    path = running.env_local("# mine", *own, "JUPYTER_TOKEN=spark-app")
    path.chmod(0o644)
    done = running.start("--generate-passwords", **OPEN)
    assert done.returncode == 0, done.stderr
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["# mine", *own]
    generated = dict(line.split("=", 1) for line in lines[2:])
    assert sorted(generated) == sorted(SECRETS)
    assert min(len(value) for value in generated.values()) >= 24
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [value for value in generated.values() if value in done.stdout + done.stderr] == []
    assert "user admin: GRAFANA_ADMIN_PASSWORD in .env.local" in done.stdout
    assert "BIND_ADDRESS=0.0.0.0" in running.variables("grafana")
    running.env_local(*own)
    for address in ("localhost", "::1"):
        running.started(BIND_ADDRESS=address)
        assert "BIND_ADDRESS=" in running.variables("grafana"), "the compose file asks for secrets if any is set"


def test_grafanas_password_is_in_its_volume_before_a_port_is_open(fresh: Machine) -> None:
    """Grafana reads the variable at its first start only; if the volume cannot be changed, Grafana is not opened."""
    fresh.env_local("GRAFANA_ADMIN_PASSWORD=own", "JUPYTER_TOKEN=own", "SPARK_DRIVER_PORT=14040")
    alone = ("--without", "kibana,jaeger,spark-master")

    def volume(command: str) -> str:
        return docker("exec", f"{fresh.project}-grafana", "sh", "-c", f"cd /var/lib/grafana; {command}")

    fresh.started(*alone)
    assert volume("echo *") == "*", "a first start takes the variable"
    fresh.started(*alone, **OPEN)
    assert volume("busybox cat password") == "own"
    assert {"reset-admin-password", "--password-from-stdin"} <= set(volume("busybox cat words").split())
    assert "own" not in volume("busybox cat words").split()
    fresh.started(*alone)
    volume("echo >is-broken")
    report = fresh.refusal(*alone, code=1, **OPEN).splitlines()[-1]
    assert report == "Cannot write GRAFANA_ADMIN_PASSWORD to Grafana's volume, so Grafana is not opened to others."
    done = fresh.start(*alone)
    assert (done.returncode, "warning: Cannot write GRAFANA_ADMIN_PASSWORD" in done.stderr) == (0, True)
