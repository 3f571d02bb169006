"""One planting of an incident: its programs in the container of the master, and what it waits for."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from spark_app.annexes.incidents.docker import Docker
from spark_app.annexes.incidents.incident import NAME
from spark_app.doctor.backends import Prometheus, get
from spark_app.errors import MachineError

MASTER: Final = "spark-master"
KAFKA: Final = "kafka"
WORKERS: Final = ("spark-worker-1", "spark-worker-2")
FOLDER: Final = "/dev/shm/incidents"
"""Of each incident that is planted, a folder of its name in the container of the master: what a killed run has left."""
DATA: Final = "/data/incidents"
"""Tables and checkpoints of what is planted, which executors have, too."""
PROGRAMS: Final = Path(__file__).parent / "programs"
LOOK_SECONDS: Final = 1.0
END_SECONDS: Final = 60
TOPICS: Final = "/opt/kafka/bin/kafka-topics.sh"
_RUN: Final = 'cd "$1" && shift && exec "$@" >>log 2>&1'
_ALIVE: Final = 'pgrep --full "$1" >/dev/null && echo alive || true'


@dataclass
class Clock:
    """The time, and pauses between two looks."""

    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep

    def wait_until(self, holds: Callable[[], bool], missing: str, *, seconds: float = 120) -> None:
        """Waits until something holds.

        Raises:
            MachineError: It does not hold in time.
        """
        began = self.now()
        while not holds():
            if self.now() - began >= seconds:
                raise MachineError(f"after {seconds:.0f} s there is still no {missing}")
            self.pause(LOOK_SECONDS)


@dataclass(frozen=True)
class Planting:
    """One planting.

    Attributes:
        incident: The name of the incident.
        name: The name of the planting, which its application or its environment has.
        docker: The containers of the stack.
        prometheus: The store of metrics.
        master_url: The page of the Spark master.
        clock: The time.
    """

    incident: str
    name: str
    docker: Docker
    prometheus: Prometheus
    master_url: str
    clock: Clock = field(default_factory=Clock)

    @property
    def folder(self) -> str:
        """Where its programs are, and what they print, in the container of the master."""
        return f"{FOLDER}/{self.incident}"

    def filled(self, text: str) -> str:
        """A query or a text with the name of the planting."""
        return text.replace(NAME, self.name)

    def begin(self) -> None:
        """Makes the folder, with the name of the planting: what a later run needs to undo it, if this one is killed."""
        self.docker.write(MASTER, f"{self.folder}/name", self.name.encode())

    def copy(self, path: Path) -> str:
        """Copies a file into the folder; returns its path there."""
        target = f"{self.folder}/{path.name}"
        self.docker.write(MASTER, target, path.read_bytes())
        return target

    def run_program(self, file: str, *arguments: str) -> None:
        """Starts a Spark program of this annex, whose first argument is the name of the planting."""
        path = self.copy(PROGRAMS / file)
        self.run_command("python", path, self.name, *arguments)

    def run_command(self, *command: str) -> None:
        """Starts a command in the folder; what it prints is in the file `log` there."""
        self.docker.begin(MASTER, _RUN, self.folder, *command)

    def last_line(self) -> str:
        """The last line that its programs have printed; empty without one."""
        return self.docker.shell(MASTER, 'tail -n 1 "$1" 2>/dev/null || true', f"{self.folder}/log")

    def wait_until(self, holds: Callable[[], bool], missing: str, *, seconds: float = 120) -> None:
        """Waits until something holds.

        Raises:
            MachineError: It does not hold in time; the message has the last line of its programs.
        """
        try:
            self.clock.wait_until(holds, missing, seconds=seconds)
        except MachineError as error:
            raise MachineError(f"{error}; its program says: {self.last_line() or 'nothing'}") from error

    def has_value(self, query: str) -> bool:
        """Whether a query has a result; false if Prometheus does not answer."""
        try:
            return bool(self.prometheus.values(self.filled(query)))
        except MachineError:
            return False

    def application(self) -> dict[str, Any] | None:
        """What the master says of the application of its name; None if none runs."""
        running = get(f"{self.master_url}/json/", "activeapps")
        return next((each for each in running if each["name"] == self.name), None)

    def wait_for_line(self, text: str, *, seconds: float = 120) -> None:
        """Waits until its programs have printed a text."""
        log = f"{self.folder}/log"
        found = 'grep -c -- "$1" "$2" 2>/dev/null || true'
        self.wait_until(
            lambda: self.docker.shell(MASTER, found, text, log) not in ("", "0"), f"line {text!r}", seconds=seconds
        )

    def end_programs(self) -> None:
        """Ends its programs: as Ctrl-C does at first, so that their event logs have an end; then for good."""
        for number in ("INT", "KILL"):
            self.docker.shell(MASTER, 'pkill "-$1" --full "$2" || true', number, self._pattern)
            try:
                self.clock.wait_until(lambda: not self.is_running(), "end of its programs", seconds=END_SECONDS)
            except MachineError:
                continue
            return

    @property
    def _pattern(self) -> str:
        """Finds its programs, and not the shell that looks for them."""
        return f"[/]{self.folder[1:]}/"

    def is_running(self) -> bool:
        """Whether a program of it runs."""
        return bool(self.docker.shell(MASTER, _ALIVE, self._pattern))

    def forget(self) -> None:
        """Removes its folder: nothing is left of it."""
        self.docker.execute(MASTER, "rm", "-rf", self.folder)

    def delete_topics(self) -> None:
        """Deletes the topics whose names begin with that of the incident."""
        pattern = f"incident_{self.incident}.*"
        server = ("--bootstrap-server", "localhost:9092")
        self.docker.execute(KAFKA, TOPICS, *server, "--delete", "--if-exists", "--topic", pattern)


def forget_data(planting: Planting) -> None:
    """Ends the programs of a planting and removes what they have written, of all plantings of the incident."""
    planting.end_programs()
    planting.docker.shell(MASTER, 'rm -rf "$1"*', f"{DATA}/incident_{planting.incident}")


def forget_topics(planting: Planting) -> None:
    """The same, and deletes the topics of the incident, which its programs use until their end."""
    planting.end_programs()
    planting.delete_topics()
    forget_data(planting)
