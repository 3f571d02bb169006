"""Starts the whole stack; scripts/start-full-stack.sh calls it. Plain Python, so that nothing has to be installed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from full_stack import listing, machine, passwords
from full_stack.compose import Compose, Container, Service, absent
from full_stack.errors import USAGE_OR_MACHINE, StartError
from full_stack.waiting import Wait

ROOT = Path(__file__).resolve().parent.parent
INTERRUPTED = 130
LIMIT_SECONDS = 420
AFTERWARDS = """
run the main job      docker exec spark-master run_etl.sh 2024-01-01
look at every hop     .venv/bin/spark-app doctor       (after make install)
end it                make docker-down                 (data stays; make docker-clean deletes it)"""


def main(words: list[str], environment: dict[str, str]) -> int:
    """Starts the stack; gives the exit code."""
    options = parsed(words)
    try:
        start(options, environment)
    except StartError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\ninterrupted; what was started goes on: make docker-down ends it", file=sys.stderr)
        return INTERRUPTED
    return 0


def parsed(words: list[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/start-full-stack.sh",
        description="Looks whether this machine can carry the stack, starts it, waits, and says where everything is. "
        "A second call changes nothing that is up.",
        epilog="Exit codes: 0 ready, 1 what was started failed, 2 the machine or the command line, 130 Ctrl-C.",
    )
    parser.add_argument(
        "--without", action="append", default=[], metavar="SERVICE",
        help="leave a service out, and what needs it; may be given more than once",
    )  # fmt: skip
    parser.add_argument("--build", action="store_true", help="build our image anew, after a change of the code")
    parser.add_argument("--force", action="store_true", help="go on where memory or disk space is short")
    parser.add_argument(
        "--generate-passwords", action="store_true", help="make the secrets that BIND_ADDRESS needs, in .env.local"
    )
    parser.add_argument(
        "--seconds", type=float, default=LIMIT_SECONDS, metavar="N",
        help=f"wait no longer than this; {LIMIT_SECONDS} if not given",
    )  # fmt: skip
    return parser.parse_args(words)


def start(options: argparse.Namespace, environment: dict[str, str]) -> None:
    """Starts the stack and tells where everything is.

    Raises:
        StartError: The machine cannot carry it, or something failed.
    """
    info = machine.require_docker()
    address = passwords.setting("BIND_ADDRESS", ROOT, environment)
    is_wide = passwords.is_wide(address)
    if is_wide:
        agrees = (lambda _: True) if options.generate_passwords else agreed
        for name in passwords.require(ROOT, environment, address=address, agrees=agrees):
            say(f"made {name} in {passwords.FILE}")
    else:
        environment = {**environment, "BIND_ADDRESS": ""}  # Compose would want secrets for any address that is given
    compose = Compose(ROOT, environment)
    services = compose.services()
    left_out = without(services, options.without)
    wanted = {name: service for name, service in services.items() if name not in left_out}
    before = compose.containers()
    check(info, wanted, before, is_forced=options.force)
    provide_images(compose, wanted, builds=options.build)
    if "grafana" in wanted:
        set_grafana_password(compose, environment, is_wide=is_wide)
    wait = Wait(compose, wanted, compose.up(list(wanted)), before, limit=options.seconds)
    wait.until_ready()
    if is_wide:
        say(f"Grafana and Jupyter are open on {address}")
    print("\n".join(listing.table(wanted, wait.seconds, left_out, own_secrets(environment))))
    print(AFTERWARDS)


def without(services: dict[str, Service], asked: Iterable[str]) -> dict[str, str]:
    """The services to leave out and why: those asked for, and those that need them.

    Raises:
        StartError: There is no such service.
    """
    unknown = sorted(set(asked) - set(services))
    if unknown:
        raise StartError(
            f"--without {' '.join(unknown)}: there are {', '.join(sorted(services))}", exit_code=USAGE_OR_MACHINE
        )
    left_out = dict.fromkeys(asked, "asked for by --without")
    while True:
        more = {
            name: f"needs {', '.join(sorted(service.needs & set(left_out)))}"
            for name, service in services.items()
            if name not in left_out and service.needs & set(left_out)
        }
        if not more:
            return left_out
        left_out.update(more)


def check(info: dict[str, Any], wanted: dict[str, Service], before: list[Container], *, is_forced: bool) -> None:
    """Says what may hurt.

    Raises:
        StartError: Something is in the way; says all that is.
    """
    # What is up already has its memory and its images.
    short = list(machine.shortages(info, ROOT))
    is_fatal = not is_forced and not before
    warnings = [*machine.map_count_too_low(), *([] if is_fatal else short)]
    for warning in warnings:
        say(f"warning: {warning}")
    problems = [*(f"{line} (--force goes on all the same)" for line in short if is_fatal)]
    problems += [*machine.names_taken(wanted.values(), before), *machine.ports_taken(wanted.values(), before)]
    if problems:
        raise StartError("\n".join(problems), exit_code=USAGE_OR_MACHINE)


def provide_images(compose: Compose, wanted: dict[str, Service], *, builds: bool) -> None:
    """Builds our image and fetches the others, where they are not here.

    Raises:
        StartError: An image cannot be had; names all such, and the services to leave out.
    """
    built = {service.image: name for name, service in wanted.items() if service.is_built_here}
    lacking: dict[str, list[str]] = {}
    images = dict.fromkeys(service.image for service in wanted.values())
    for image in dict.fromkeys([*(built if builds else ()), *absent(images)]):
        users = [name for name, service in wanted.items() if service.image == image]
        is_ours = image in built
        say(f"{'building' if is_ours else 'fetching'} {image}")
        if is_ours and not compose.build(built[image]):
            raise StartError(f"{image} cannot be built: the lines above say why")
        if not is_ours and not compose.pull(users[0]):
            lacking[image] = users
    if lacking:
        told = [
            f"{image} is not here and cannot be fetched; it is needed by {', '.join(users)}"
            for image, users in lacking.items()
        ]
        names = " ".join(f"--without {users[0]}" for users in lacking.values())
        raise StartError("\n".join([*told, f"Leave out what can be spared: {names}"]), exit_code=USAGE_OR_MACHINE)


def set_grafana_password(compose: Compose, environment: dict[str, str], *, is_wide: bool) -> None:
    """Grafana takes the variable at its very first start only: later its volume has to be told, before a port is open.

    Raises:
        StartError: It could not be told, and Grafana would be open to others with an old password.
    """
    password = passwords.setting("GRAFANA_ADMIN_PASSWORD", ROOT, environment)
    if not password or not compose.has_data("grafana") or compose.change_grafana_password(password):
        return
    told = "the password in Grafana's volume could not be set to GRAFANA_ADMIN_PASSWORD"
    if is_wide:
        raise StartError(f"{told}: it stays on the loopback until it can")
    say(f"warning: {told}")


def own_secrets(environment: dict[str, str]) -> dict[str, str]:
    """The secrets that are set, and where."""
    names = [name for name in passwords.WELL_KNOWN if passwords.setting(name, ROOT, environment)]
    return {name: "the shell" if environment.get(name) else passwords.FILE for name in names}


def agreed(question: str) -> bool:
    """Whether whoever sits at the terminal says yes; nobody there is a no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{question} [y/N] ", end="", flush=True, file=sys.stderr)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def say(text: str) -> None:
    """Says a line about how it goes."""
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], dict(os.environ)))  # noqa: TID251 - the script is no part of `app`
