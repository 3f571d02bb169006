"""Checks this machine, runs `docker compose up --wait` for the whole stack, and prints where everything is.

scripts/start-full-stack.sh runs it. It needs no packages, so that nothing has to be installed first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import preflight
from preflight import StartError, docker

ROOT = Path(__file__).resolve().parent.parent
FILE = "docker-compose.full.yml"
INTERRUPTED = 130
WAIT_SECONDS = 420
LOG_LINES = 20
HEADERS = ("service", "url", "state", "password")
TWO_FILES = (
    "--file can be given once: each file has the whole stack. docker-compose.ha-tls.yml has two masters and TLS, "
    "docker-compose.s3-tls.yml an S3 server and TLS; a file of your own can merge others of compose/ as these do"
)
PASSWORDS = {
    "grafana": ("GRAFANA_ADMIN_PASSWORD", "user admin", "admin / admin"),
    "jupyter": ("JUPYTER_TOKEN", "token", "token spark-app"),
}
"""The variable that holds the secret, what the secret is for, and the default."""
SAMPLE = (
    "a sample of the demo shop runs now, once: a day, two minutes of streams, a training; the page has each run "
    "(--no-sample leaves it out)"
)
PORT_NOTES = {"4317": "OTLP, gRPC", "4318": "OTLP, HTTP"}
PORTS_WITHOUT_HTTP = (4317, 9092)
PORT_PATHS = {13133: "/health"}
IS_CLONE = (ROOT / "Makefile").exists()
"""Whether this is a clone of spark-app, and not what `spark-app init --stack` wrote."""


def main(arguments: list[str], environment: dict[str, str]) -> int:
    """Starts the stack and returns the exit code."""
    options = parse(arguments)
    try:
        start(options, environment)
    except StartError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        stop, _ = stopping(options.file)
        print(f"\nInterrupted. Started containers keep running; {stop} stops them.", file=sys.stderr)
        return INTERRUPTED
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/start-full-stack.sh",
        description="Checks this machine, starts the whole stack, waits until it is healthy, and prints where "
        "everything is. Running it again changes nothing that is up to date.",
        epilog="Exit codes: 0 healthy, 1 a container failed, 2 change the machine or the command line, 130 Ctrl-C.",
    )
    add = parser.add_argument
    add(
        "--without",
        action="extend",
        type=names,
        default=[],
        metavar="SERVICE[,SERVICE...]",
        help="leave out services and those that need them",
    )
    add(
        "--file",
        action="append",
        metavar="FILE",
        help=f"the compose file, such as docker-compose.ha.yml (default: {FILE})",
    )
    add("--build", action="store_true", help="rebuild the spark-app image, after a change of the code")
    add("--force", action="store_true", help="start even if memory or disk space is short")
    add("--generate-passwords", action="store_true", help="write the secrets that BIND_ADDRESS needs to .env.local")
    add("--no-sample", action="store_true", help="run no sample at the first start")
    add("--seconds", type=int, default=WAIT_SECONDS, metavar="N", help="longest wait for health (default: %(default)s)")
    options = parser.parse_args(arguments)
    [options.file, *others] = options.file or [FILE]
    if others:
        parser.error(TWO_FILES)
    return options


def names(text: str) -> list[str]:
    """The names in a list with commas."""
    return [name for name in map(str.strip, text.split(",")) if name]


def stopping(file: str) -> tuple[str, str]:
    """How to stop the stack, and how to delete its data too."""
    if IS_CLONE and file == FILE:
        return "make docker-down", "make docker-clean"
    return f"docker compose -f {ROOT / file} down", "--volumes"


def next_steps(file: str) -> list[str]:
    """What to do with the stack."""
    stop, clean = stopping(file)
    doctor = ".venv/bin/spark-app doctor       (after make install)" if IS_CLONE else "spark-app doctor"
    return [
        "run the daily job     docker exec spark-master run_etl.sh 2024-01-01",
        "run the streams       docker exec -it spark-master run_streaming.sh",
        f"check every part      {doctor}",
        f"stop the stack        {stop:31} (keeps the data; {clean} deletes it)",
    ]


def start(options: argparse.Namespace, environment: dict[str, str]) -> None:
    """Starts the stack and prints the table of its services.

    Raises:
        StartError: The machine cannot run the stack, or a container failed.
    """
    info = preflight.require_docker()
    preflight.require_effect(ROOT)
    address = preflight.settings(ROOT, environment).get("BIND_ADDRESS", "")
    is_open = preflight.LOOPBACK.fullmatch(address) is None
    if is_open:
        for name in preflight.require_secrets(ROOT, environment, generate=options.generate_passwords):
            say(f"generated {name} in {preflight.OWN_FILE}")
    else:
        environment = {**environment, "BIND_ADDRESS": ""}  # the compose file asks for secrets if any address is set
    compose = Compose(environment, options.file)
    config = compose.config()
    left_out = find_left_out(config["services"], options.without)
    containers = [json.loads(line) for line in docker("ps", "--format", "{{json .}}").stdout.splitlines()]
    ports = with_driver_port(compose, environment, ports_of(config, left_out, containers), left_out)
    check(info, ports, is_forced=options.force)
    builders = {service["image"]: name for name, service in config["services"].items() if "build" in service}
    bases = {image: base_images(config["services"][name], builders) for image, name in builders.items()}
    provide_images(compose, ports.services, builders, bases, excluded=options.without, rebuild=options.build)
    ports = with_driver_port(compose, environment, ports, left_out)  # a build takes minutes: another Spark may have it
    services = ports.services
    if "grafana" in services:
        set_grafana_password(compose, config["volumes"]["grafana"]["name"], is_open=is_open)
    seconds = up(compose, services, timeout=options.seconds)
    notes = {**PORT_NOTES, preflight.driver_port(ROOT, environment): "while a job runs"}
    rows = table(services, left_out, compose.secrets(), notes)
    lines = [*first_page(services), *rows, "", f"ready after {seconds:.0f} s", "", *next_steps(options.file)]
    if has_tls(services):
        lines = [line.replace("http://", "https://") for line in lines]
    print("\n".join(lines))
    if not options.no_sample and start_sample(services):
        say(SAMPLE)
    if is_open:
        say(f"Grafana and Jupyter listen on {address}")


def first_page(services: Mapping[str, Any]) -> Iterator[str]:
    """The address of the page that leads to all others."""
    for port in services.get("reports", {}).get("ports", []):
        yield f"everything is on one page: http://localhost:{port['published']}"
        yield ""


def start_sample(services: Mapping[str, Any]) -> bool:
    """Starts the sample, unless there are tables, or it has run; says whether it did."""
    if "spark-master" not in services or docker("exec", "spark-master", "run_sample.sh", "--is-due").returncode != 0:
        return False
    return docker("exec", "--detach", "spark-master", "run_sample.sh").returncode == 0


class Compose:
    """`docker compose` of the full stack, or of a larger one."""

    def __init__(self, environment: dict[str, str], file: str) -> None:
        self._environment = environment
        self._command = ["docker", "compose", "-f", file]

    def capture(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a command and captures its output."""
        return subprocess.run(
            [*self._command, *arguments], cwd=ROOT, env=self._environment, input=stdin, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    def show(self, *arguments: str) -> int:
        """Runs a command with its output on stderr; returns its exit code."""
        command = [*self._command, *arguments]
        return subprocess.call(command, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)

    def config(self) -> dict[str, Any]:
        """The merged compose files.

        Raises:
            StartError: Compose rejects them.
        """
        answer = self.capture("config", "--format", "json")
        if answer.returncode != 0:
            raise StartError(f"docker compose config: {answer.stderr.strip()}")
        config: dict[str, Any] = json.loads(answer.stdout)
        return config

    def secrets(self) -> dict[str, str]:
        """The secrets that are set, each with the place that sets it."""
        names = [name for name in preflight.DEFAULT_SECRETS if preflight.settings(ROOT, self._environment).get(name)]
        return {name: "the shell" if self._environment.get(name) else preflight.OWN_FILE for name in names}

    def set_grafana_password(self) -> bool:
        """Writes GRAFANA_ADMIN_PASSWORD into Grafana's volume without opening a port."""
        command = ["run", "--rm", "--no-deps", "--no-TTY", "--entrypoint", "grafana", "grafana", "cli"]
        command += ["--homepath", "/usr/share/grafana", "--configOverrides", "cfg:default.paths.data=/var/lib/grafana"]
        password = preflight.settings(ROOT, self._environment)["GRAFANA_ADMIN_PASSWORD"]
        answer = self.capture(*command, "admin", "reset-admin-password", "--password-from-stdin", stdin=password)
        return answer.returncode == 0


def find_left_out(services: Mapping[str, Any], excluded: Iterable[str]) -> dict[str, str]:
    """The services to leave out, each with the reason: those excluded, and those that need them.

    Raises:
        StartError: An excluded service does not exist.
    """
    unknown = sorted(set(excluded) - set(services))
    if unknown:
        raise StartError(f"--without {' '.join(unknown)}: no such service; there are {', '.join(sorted(services))}")
    left_out = dict.fromkeys(excluded, "--without")
    while True:
        needs = {name: sorted(_needs(service) & set(left_out)) for name, service in services.items()}
        added = {name: f"needs {', '.join(each)}" for name, each in needs.items() if each and name not in left_out}
        if not added:
            return left_out
        left_out.update(added)


def _needs(service: Mapping[str, Any]) -> set[str]:
    depends_on = service.get("depends_on", {})
    return {name for name, dependency in depends_on.items() if dependency.get("required", True)}


def ports_of(
    config: Mapping[str, Any], left_out: Mapping[str, str], containers: list[Mapping[str, str]]
) -> preflight.Ports:
    """The services to start, and the containers that may hold their ports."""
    services = {name: service for name, service in config["services"].items() if name not in left_out}
    return preflight.Ports(services, containers, config["name"])


def with_driver_port(
    compose: Compose, environment: Mapping[str, str], ports: preflight.Ports, left_out: Mapping[str, str]
) -> preflight.Ports:
    """The ports to publish, with another one for the web UI of drivers if a program listens on the present one."""
    moved = preflight.move_driver_port(ROOT, environment, ports)
    if not moved:
        return ports
    say(moved)
    return ports_of(compose.config(), left_out, ports.containers)


def check(info: Mapping[str, Any], ports: preflight.Ports, *, is_forced: bool) -> None:
    """Prints warnings about this machine.

    Raises:
        StartError: The machine cannot run the stack; the message lists all reasons.
    """
    shortages = list(preflight.shortages(info, ROOT))
    # A stack that is up already has its memory and its images.
    is_fatal = not is_forced and not any(preflight.belongs_to(each, ports.project) for each in ports.containers)
    for warning in [*preflight.map_count_warnings(), *([] if is_fatal else shortages)]:
        say(f"warning: {warning}")
    problems = [f"{shortage} (--force starts it anyway)" for shortage in shortages if is_fatal]
    problems += preflight.ports_taken(ports)
    if problems:
        raise StartError("\n".join(problems))


def provide_images(
    compose: Compose,
    services: Mapping[str, Any],
    builders: Mapping[str, str],
    bases: Mapping[str, list[str]],
    *,
    excluded: Iterable[str],
    rebuild: bool,
) -> None:
    """Pulls the images that are missing, and builds that of spark-app, which takes minutes, after that.

    Args:
        compose: Builds and pulls.
        services: The services to start.
        builders: The service that builds an image, by that image: Compose builds nothing for another user of it. It may
            not be one to start.
        bases: The images to build before an image, by that image.
        excluded: What the command line leaves out.
        rebuild: Whether to build what exists, too.

    Raises:
        StartError: An image cannot be built or pulled; names the services to leave out.
    """
    users: dict[str, list[str]] = {}
    for name, service in services.items():
        users.setdefault(service["image"], []).append(name)
    missing = missing_images(users)
    pull(compose, {image: users[image] for image in missing if image not in builders}, excluded)
    wanted = [image for image in users if image in builders and (rebuild or image in missing)]
    wanted = list(dict.fromkeys([*(base for image in wanted for base in bases[image]), *wanted]))
    for image in wanted if rebuild else missing_images(wanted):
        if compose.show("build", builders[image]) != 0 or missing_images([image]):
            raise StartError(f"Cannot build {image}; the lines above say why.", exit_code=1)


def base_images(service: Mapping[str, Any], builders: Iterable[str]) -> list[str]:
    """The images that that of a service begins with, if they are built here: arguments of its build name them."""
    named = service["build"].get("args") or {}
    return [image for image in builders if image != service["image"] and image in named.values()]


def pull(compose: Compose, users: Mapping[str, list[str]], excluded: Iterable[str]) -> None:
    """Pulls images, each of which has users.

    Raises:
        StartError: Some cannot be pulled; names the services to leave out, with those that are left out already.
    """
    if users:
        compose.show("pull", "--ignore-pull-failures", *(names[0] for names in users.values()))
    if unavailable := missing_images(users):
        lines = [f"{image} cannot be pulled; needed by {', '.join(users[image])}." for image in unavailable]
        options = ",".join([*excluded, *(users[image][0] for image in unavailable)])
        raise StartError("\n".join([*lines, f"To start without them: scripts/start-full-stack.sh --without {options}"]))


def missing_images(images: Iterable[str]) -> list[str]:
    """The images that this machine does not have."""
    images = list(images)
    # One call is faster than twelve, and finds them all as a rule.
    if not images or docker("image", "inspect", *images).returncode == 0:
        return []
    return [image for image in images if docker("image", "inspect", image).returncode != 0]


def set_grafana_password(compose: Compose, volume: str, *, is_open: bool) -> None:
    """Sets the password in Grafana's volume: Grafana reads the variable at its very first start only.

    Raises:
        StartError: It failed, and Grafana would be open to others with an old password.
    """
    is_first_start = docker("volume", "inspect", volume).returncode != 0
    if is_first_start or "GRAFANA_ADMIN_PASSWORD" not in compose.secrets() or compose.set_grafana_password():
        return
    problem = "Cannot write GRAFANA_ADMIN_PASSWORD to Grafana's volume"
    if is_open:
        raise StartError(f"{problem}, so Grafana is not opened to others.", exit_code=1)
    say(f"warning: {problem}; the old password stays.")


def up(compose: Compose, services: Mapping[str, Any], *, timeout: int) -> float:
    """Starts the services and waits until they are healthy; returns the seconds that took.

    Raises:
        StartError: A container failed or is not healthy in time; shows its last lines.
    """
    began, since = time.monotonic(), datetime.now(timezone.utc).isoformat()  # noqa: UP017 - Python 3.9 has no datetime.UTC
    alone = one_shots_alone(services)
    others = [name for name in services if name not in alone]
    options = ("--detach", "--no-build", "--no-deps")
    is_up = not others or compose.show("up", *options, "--wait", "--wait-timeout", str(timeout), *others) == 0
    for name in alone if is_up else ():
        compose.show("up", *options, name)
        is_up &= docker("wait", services[name]["container_name"]).stdout.strip() == "0"
    # Compose has ended with 0 while a container was still starting when its time was over.
    reasons = list(explain(services, since))
    if not is_up or reasons:
        raise StartError("\n".join(reasons or ["docker compose up failed; the lines above say why."]), exit_code=1)
    return time.monotonic() - began


def has_tls(services: Mapping[str, Any]) -> bool:
    """Whether the services speak HTTPS, as those of docker-compose.tls.yml do: their links do, too."""
    return any((service.get("environment") or {}).get("STACK_SCHEME") == "https" for service in services.values())


def one_shots_alone(services: Mapping[str, Any]) -> list[str]:
    """One-shots that no service waits for, as those that do are left out: `up --wait` takes their end for a failure."""
    conditions = [each for service in services.values() for each in service.get("depends_on", {}).items()]
    waited = {name for name, dependency in conditions if dependency["condition"] == "service_completed_successfully"}
    return [name for name, service in services.items() if service.get("restart") == "no" and name not in waited]


def explain(services: Mapping[str, Any], since: str) -> Iterator[str]:
    """The state and the last lines of each container that failed or, if none did, of each that is not healthy yet."""
    names = {service["container_name"]: service.get("restart") == "no" for service in services.values()}
    containers = json.loads(docker("container", "inspect", *names).stdout or "[]")
    failed = [each for each in containers if has_failed(each, since, is_one_shot=names[each["Name"].lstrip("/")])]
    for container in failed or [each for each in containers if _health(each) == "starting"]:
        name = container["Name"].lstrip("/")
        yield f"{name} {_condition(container)}; its last lines:"
        output = docker("logs", "--tail", str(LOG_LINES), name)
        yield from (f"  {line}" for line in (output.stdout + output.stderr).splitlines())


def _condition(container: Mapping[str, Any]) -> str:
    state = container["State"]
    if state["Status"] in ("exited", "dead", "restarting"):
        return f"ended with exit code {state['ExitCode']}"
    restarts = container.get("RestartCount", 0)
    return f"was restarted {restarts} times" if restarts else f"is {_health(container)}"


def has_failed(container: Mapping[str, Any], since: str, *, is_one_shot: bool) -> bool:
    """Whether a container of `docker inspect` ended when it should not, or is unhealthy.

    A container that ended before `since` and was not started again only waits for another one.
    """
    state = container["State"]
    if state["Status"] in ("exited", "dead"):
        return state["FinishedAt"] >= since and not (is_one_shot and state["ExitCode"] == 0)
    is_crashing = container.get("RestartCount", 0) > 0 and _health(container) != "healthy"
    return state["Status"] == "restarting" or is_crashing or _health(container) == "unhealthy"


def _health(container: Mapping[str, Any]) -> str:
    return str(container["State"].get("Health", {}).get("Status", ""))


def table(
    services: Mapping[str, Any], left_out: Mapping[str, str], secrets: Mapping[str, str], notes: Mapping[str, str]
) -> Iterator[str]:
    """The services, their addresses with notes by the port in the container, and where their passwords are."""
    rows = [HEADERS, *(row for name, service in services.items() for row in _rows(name, service, secrets, notes))]
    rows += [(name, "", "left out", reason) for name, reason in left_out.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()  # noqa: B905 - not in 3.9


def _rows(
    name: str, service: Mapping[str, Any], secrets: Mapping[str, str], notes: Mapping[str, str]
) -> Iterator[tuple[str, str, str, str]]:
    first, *others = [_url(port, notes) for port in service.get("ports", [])] or [""]
    yield name, first, "done" if service.get("restart") == "no" else "up", _password(name, secrets)
    yield from (("", url, "", "") for url in others)


def _url(port: Mapping[str, Any], notes: Mapping[str, str]) -> str:
    target = int(port["target"])
    address = f"localhost:{port['published']}{PORT_PATHS.get(target, '')}"
    url = address if target in PORTS_WITHOUT_HTTP else f"http://{address}"
    return f"{url} ({notes[str(target)]})" if str(target) in notes else url


def _password(name: str, secrets: Mapping[str, str]) -> str:
    if name not in PASSWORDS:
        return ""
    variable, purpose, default = PASSWORDS[name]
    return f"{purpose}: {variable} in {secrets[variable]}" if variable in secrets else default


def say(line: str) -> None:
    """Prints a line of progress."""
    print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], dict(os.environ)))  # noqa: TID251 - the script is not part of `app`
