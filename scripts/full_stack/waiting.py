"""Waits until the stack is ready, and no longer than there is hope: what ended badly ends the wait at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from full_stack.compose import Compose, Container, Service, Up, last_lines
from full_stack.errors import StartError

EVERY_SECONDS = 1.0
FIRST_SECONDS = 0.1  # a stack that is up already should not be waited for
ENDED = ("exited", "dead", "restarting")


class Progress:
    """Says what is ready, a line each, and on a terminal what is waited for, on a line that changes."""

    def __init__(self) -> None:
        self._is_live = sys.stderr.isatty()

    def ready(self, name: str, seconds: float) -> None:
        """Says that a service is ready."""
        self._clear()
        print(f"{seconds:5.0f} s  {name} is ready", file=sys.stderr)

    def waiting(self, names: list[str], seconds: float) -> None:
        """Says what is still waited for."""
        if self._is_live:
            self._clear()
            print(f"{seconds:5.0f} s  waiting for {', '.join(names)}"[:79], end="", flush=True, file=sys.stderr)

    def done(self) -> None:
        """Leaves the line."""
        self._clear()

    def _clear(self) -> None:
        if self._is_live:
            print("\r\033[K", end="", flush=True, file=sys.stderr)


@dataclass
class Wait:
    """One wait for some services, begun when their start is.

    Attributes:
        seconds: When each service was ready, counted from the begin; 0 for what was ready before.
    """

    compose: Compose
    services: dict[str, Service]
    up: Up
    before: Iterable[Container]
    limit: float
    progress: Progress = field(default_factory=Progress)
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._old = {container.id for container in self.before if _is_down(container)}
        self._was_ready = {container.id for container in self.before if self._is_ready(container)}
        self._ids: dict[str, str] = {}

    def until_ready(self) -> None:
        """Waits.

        Raises:
            StartError: A container ended that should not have, is unhealthy or could not be started, or time is up.
        """
        pause = FIRST_SECONDS
        try:
            while not self._look():
                time.sleep(pause)
                pause = min(2 * pause, EVERY_SECONDS)
        finally:
            self.progress.done()
            self.up.end()

    def _look(self) -> bool:
        """Whether all are ready now."""
        exit_code = self.up.exit_code()  # before the containers, so that their states are not older
        now = time.monotonic() - self._began
        containers = [found for found in self.compose.containers() if found.service in self.services]
        if exit_code is not None:
            self._old = set()
        # What was down before this start tells nothing, until it was started again.
        self._old &= {container.id for container in containers if _is_down(container)}
        current = [container for container in containers if container.id not in self._old]
        failed = [container for container in current if self._has_failed(container)]
        if failed:
            raise StartError("\n".join(line for container in failed for line in _story(container)))
        if exit_code:
            raise StartError("\n".join(["docker compose up failed:", *self.up.last_lines()]))
        ready = [container for container in current if self._is_ready(container)]
        self._note(ready, now)
        waited_for = sorted(set(self.services) - {container.service for container in ready})
        if now > self.limit:
            raise StartError("\n".join(self._too_late(waited_for, containers)))
        self.progress.waiting(waited_for or ["docker compose up"], now)
        return not waited_for and exit_code == 0

    def _note(self, ready: list[Container], now: float) -> None:
        for container in ready:
            if self._ids.get(container.service) != container.id:
                self._ids[container.service] = container.id
                self.seconds[container.service] = 0.0 if container.id in self._was_ready else now
                self.progress.ready(container.service, self.seconds[container.service])

    def _is_ready(self, container: Container) -> bool:
        service = self.services.get(container.service)
        if service is not None and service.is_one_shot:
            return container.state == "exited" and container.exit_code == 0
        return container.state == "running" and container.health in ("", "healthy")

    def _has_failed(self, container: Container) -> bool:
        is_done = self.services[container.service].is_one_shot and container.exit_code == 0
        return _is_down(container) and not is_done

    def _too_late(self, waited_for: list[str], containers: list[Container]) -> Iterable[str]:
        yield f"Not ready after {self.limit:.0f} s: {', '.join(waited_for) or 'docker compose up'}"
        for container in containers:
            if container.service in waited_for:
                yield from _story(container)


def _is_down(container: Container) -> bool:
    return container.state in ENDED or container.health == "unhealthy"


def _story(container: Container) -> Iterable[str]:
    if container.state in ENDED:
        yield f"{container.name} ended with exit code {container.exit_code}; its last lines:"
    else:
        yield f"{container.name} is {container.health or container.state}; its last lines:"
    yield from (f"  {line}" for line in last_lines(container.name))
