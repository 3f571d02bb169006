"""`make release` refuses what is no release before anything is built.

tests/wheel tests the wheel that it builds, and tests/stack the image.
"""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.readme import README, ROOT

VERSION: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
TOOLS: Final = ("bash", "env", "git", "grep", "make", "mkdir", "sed", "sha256sum", "touch", "wc")
MAKEFILE: Final = "test-wheel:\n\t@mkdir -p dist && touch dist/spark_app.whl\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A committed project of version 1.2.3 with an entry in its change log, beside a folder `bin` without Docker."""
    folder = tmp_path / "project"
    (folder / "scripts").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or pytest.fail(f"this machine has no {tool}"))
    shutil.copy(ROOT / "scripts" / "release.sh", folder / "scripts")
    (folder / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    (folder / ".gitignore").write_text("/dist/\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n', encoding="utf-8")
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## [1.2.3] - 2026-11-23\n", encoding="utf-8")
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def git(project: Path, *words: str) -> None:
    """Runs git in a project, as somebody."""
    somebody = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    subprocess.run(["git", *somebody, *words], cwd=project, check=True)


def commit(project: Path) -> None:
    """Commits everything."""
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "Prepare a release")


def released(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What the script does with a project."""
    environment = {"PATH": str(project.parent / "bin"), "HOME": str(project.parent)}
    script = project / "scripts" / "release.sh"
    return subprocess.run([script, *options], env=environment, capture_output=True, text=True, check=False)


def refusal(project: Path, *options: str) -> str:
    """The line that the script prints; the exit code is 2, and nothing is built."""
    done = released(project, *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert not (project / "dist").exists()
    return done.stderr.removeprefix("no release: ")


@pytest.mark.parametrize("headings", ["", "## Unreleased\n\n### 1.2.3\n", "## 1.2.30\n", "## 1.2.3-rc1\n"])
def test_a_version_without_a_heading_in_the_change_log_is_refused(project: Path, headings: str) -> None:
    """Users would not learn what is new."""
    (project / "CHANGELOG.md").write_text(headings, encoding="utf-8")
    commit(project)
    assert refusal(project, "--no-image").startswith("CHANGELOG.md has no heading of 1.2.3, the version in pyproj")


@pytest.mark.parametrize("file", ["pyproject.toml", "app.py"])
def test_what_is_not_committed_is_refused(project: Path, file: str) -> None:
    """A changed file and a new one: nobody could build the release again."""
    with (project / file).open("a", encoding="utf-8") as changed:
        changed.write("\n")
    assert refusal(project, "--no-image").startswith("not everything is committed")


def test_a_version_with_a_tag_is_refused(project: Path) -> None:
    """One version is one release."""
    git(project, "tag", "v1.2.3")
    assert refusal(project, "--no-image") == "the tag v1.2.3 exists: raise the version in pyproject.toml.\n"


def test_a_release_without_docker_is_refused(project: Path) -> None:
    """The line says how to leave the image out, which works."""
    assert refusal(project) == "docker is missing: install it, or leave the image out: make release ARGS=--no-image\n"
    done = released(project, "--no-image")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^ +0 bytes  sha256:e3b0c442\w+  spark_app\.whl$", done.stdout, re.MULTILINE)
    assert done.stdout.endswith("without an image (--no-image)\n")


def test_another_option_is_refused(project: Path) -> None:
    """A misspelt option builds no image that was not asked for."""
    assert refusal(project, "--no-images") == "the only option is --no-image, not '--no-images'.\n"


def test_the_files_that_name_the_version_agree() -> None:
    """The image of the stack and the wheel in the README are of the version in pyproject.toml."""
    (image,) = re.findall(r"^SPARK_APP_IMAGE=(.+)$", (ROOT / ".env").read_text(encoding="utf-8"), re.MULTILINE)
    assert image == f"spark-app:{VERSION}"
    assert set(re.findall(r"spark_app-([\w.]+)-py3", README)) == {VERSION}
