"""The containers of the stack on this machine, by the command `docker`."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from spark_app.errors import MachineError

SECONDS: Final = 120
WRITE: Final = 'mkdir -p "${1%/*}" && cat >"${1%/*}/.part" && mv "${1%/*}/.part" "$1"'
Run = Callable[[Sequence[str], bytes], "subprocess.CompletedProcess[bytes]"]


def run_docker(arguments: Sequence[str], content: bytes) -> "subprocess.CompletedProcess[bytes]":
    """Runs `docker` with a text on its standard input.

    Raises:
        MachineError: There is no Docker, or it does not answer.
    """
    try:
        return subprocess.run(["docker", *arguments], input=content, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise MachineError(f"docker {' '.join(arguments[:3])} failed: {error}") from error


@dataclass(frozen=True)
class Docker:
    """The command `docker`.

    Attributes:
        run: Runs it with arguments and the content of its standard input.
    """

    run: Run = run_docker

    def output(self, *arguments: str, content: bytes = b"") -> str:
        """What a command prints.

        Raises:
            MachineError: It failed; the message has its last line.
        """
        done = self.run(arguments, content)
        if done.returncode:
            last = done.stderr.decode("utf-8", errors="replace").strip().splitlines()[-1:]
            raise MachineError(f"docker {' '.join(arguments[:3])} failed: {' '.join(last) or 'no message'}")
        return done.stdout.decode("utf-8", errors="replace").strip()

    def execute(self, container: str, *command: str, content: bytes = b"") -> str:
        """What a command in a container prints.

        Raises:
            MachineError: It failed.
        """
        return self.output("exec", "--interactive", container, *command, content=content)

    def shell(self, container: str, script: str, *arguments: str) -> str:
        """What a shell script in a container prints; `$1` and so on are the arguments.

        Raises:
            MachineError: It failed.
        """
        return self.execute(container, "sh", "-c", script, "sh", *arguments)

    def write(self, container: str, path: str, content: bytes) -> None:
        """Writes a file in a container and creates its folder; no reader sees a part of it."""
        self.execute(container, "sh", "-c", WRITE, "sh", path, content=content)

    def begin(self, container: str, script: str, *arguments: str) -> None:
        """Starts a shell script in a container, and does not wait for it."""
        self.output("exec", "--detach", container, "sh", "-c", script, "sh", *arguments)

    def kill(self, container: str) -> None:
        """Kills a container, which stays stopped."""
        self.output("kill", container)

    def start(self, container: str) -> None:
        """Starts a container, if it does not run."""
        if self.state(container) != "running":
            self.output("start", container)

    def state(self, container: str) -> str:
        """The state of a container: `running`, `exited`."""
        return self.output("inspect", "--format", "{{.State.Status}}", container)

    def statuses(self, project: str) -> dict[str, str]:
        """The state and the health of each container of a Compose project that runs or has run, by its name."""
        form = "{{.Names}}\t{{.State}} {{.Status}}"
        listed = self.output("ps", "--all", "--filter", f"label=com.docker.compose.project={project}", "--format", form)
        return dict(line.split("\t", 1) for line in listed.splitlines())
