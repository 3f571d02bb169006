"""Which services of the stack have a container on this machine: what has none was left out of the start."""

import subprocess
from typing import Final

SECONDS: Final = 10
PROJECT: Final = "spark-app"
"""The Compose project of the stack, unless COMPOSE_PROJECT_NAME names another."""


def services(project: str | None) -> frozenset[str]:
    """The services with a container, in any state; none if the stack does not run here or Docker does not answer."""
    listing = ["docker", "ps", "--all", "--format", '{{.Label "com.docker.compose.service"}}']
    command = [*listing, "--filter", f"label=com.docker.compose.project={project or PROJECT}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return frozenset()
    return frozenset(done.stdout.split())
