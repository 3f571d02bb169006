"""`make release` builds an image of the version and checks the program in it, with a real Docker."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.contract.test_release import commit, project
from tests.stack.machines import BUSYBOX, docker

IMAGE = "spark-app:1.2.3"
COMPOSE = "services: {spark-master: {image: '${SPARK_APP_IMAGE:?}', build: .}}\n"

__all__ = ["project"]


def released(project: Path, *, version: str) -> subprocess.CompletedProcess[str]:
    """What `make release` does with a project whose image has a program of a version."""
    (project / "program").write_text(f"#!/bin/sh\necho spark-app {version}\n", encoding="utf-8")
    (project / "program").chmod(0o755)
    dockerfile = f"FROM {BUSYBOX}\nCOPY program /bin/spark-app\n"
    (project / "Dockerfile").write_text(dockerfile, encoding="utf-8")
    (project / "docker-compose.yml").write_text(COMPOSE, encoding="utf-8")
    commit(project)
    script = project / "scripts" / "release.sh"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMPOSE_")}
    return subprocess.run([script], cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_an_image_is_of_the_same_version(project: Path, request: pytest.FixtureRequest) -> None:
    """Compose builds it under the tag of the version, and the program in it says this version, too."""
    request.addfinalizer(lambda: docker("image", "rm", "--force", IMAGE))
    done = released(project, version="1.2.3")
    assert done.returncode == 0, done.stderr
    size, digest = docker("image", "inspect", "--format", "{{.Size}} {{.Id}}", IMAGE).split()
    assert re.fullmatch(rf" *{size} bytes  {digest}  {IMAGE}", done.stdout.splitlines()[-1])
    done = released(project, version="1.2.2")
    says = "no release: the image spark-app:1.2.3 says 'spark-app 1.2.2' instead of 'spark-app 1.2.3'."
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, says)
