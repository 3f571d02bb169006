"""The wheel of `make wheel`, installed as a user does, beside programs with a Spark of their own: `make test-wheel`."""

import os
import re
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest

from spark_app.report.results.schema import Results
from tests.wheel.conftest import ROOT, UV, ran

OLDER_SPARK: Final = "pyspark==3.5.9"
OF_SHOP: Final = ("config/etl/", "config/ml/", "config/streaming/")
STACK: Final = (
    ".dockerignore", ".env", "Dockerfile", "charts", ":(glob)compose/*.yml", ":(glob)docker-compose*.yml",
    "docs/accuracy.md", "docs/diagnoses.md", "docs/incidents.md", "docs/runbook.md", "grafana/dashboards",
    "grafana/provisioning", "prometheus/prometheus.yml", "prometheus/rules",
    "prometheus/scrape", "prometheus/tls", "requirements-image.txt", "scripts/kubernetes-entrypoint.sh",
    "scripts/preflight.py",
    ":(glob)scripts/run_*.sh", ":(glob)scripts/start*",
)  # fmt: skip
SOURCES: Final = {"LICENSE", "README.md", "pyproject.toml", "setup.py"}
JOB: Final = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("seven").master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.range(1000).selectExpr("id % 7 AS key").groupBy("key").count().write.parquet("keys")
spark.stop()
"""


@pytest.fixture(scope="module")
def older_spark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with Spark 3.5 and without spark-app."""
    folder = tmp_path_factory.mktemp("spark")
    uncompressed = ("--config-settings-package", "pyspark:--build-option=--compression=stored")
    ran([UV, "venv", "--python", sys.executable, folder / "venv"], folder).check_returncode()
    python = folder / "venv" / "bin" / "python"
    ran([UV, "pip", "install", "--python", python, *uncompressed, OLDER_SPARK], folder).check_returncode()
    return python


def observed(command: Sequence[str | Path], python: Path, folder: Path) -> Results:
    """What `observe` says of the job that `python job.py` runs in an empty folder."""
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    arguments = ("observe", "--json", "observed.json", "--", "python", "job.py")
    ran([*command, *arguments], folder, PATH=path).check_returncode()
    return msgspec.json.decode((folder / "observed.json").read_bytes(), type=Results)


def files(folder: Path) -> Mapping[Path, int]:
    """All files below a folder with the instant of their last change, but for what Python compiles."""
    found = [file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    return {file: file.stat().st_mtime_ns for file in found}


def committed(*patterns: str) -> set[str]:
    """Committed files, without the configuration of the demo shop's pipelines; of linked folders what is in them."""
    names = set(ran(["git", "ls-files", *patterns], ROOT).stdout.splitlines())
    for link in {name for name in names if (ROOT / name).is_dir()}:
        folder = (ROOT / link).resolve().relative_to(ROOT).as_posix()
        names = names - {link} | {f"{link}{name.removeprefix(folder)}" for name in committed(folder)}
    return {name for name in names if not name.startswith(OF_SHOP)}


def test_the_wheel_holds_the_program_its_configuration_and_the_stack(wheel: Path) -> None:
    """Each committed file of them, and none of the tests or of the demo shop."""
    program = {
        re.sub("^config/", "spark_app/config/", name).removeprefix("src/") for name in committed("src", "config")
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == program | {f"spark_app/stack/{name}" for name in committed(*STACK)}


def test_the_sdist_holds_what_the_wheel_is_built_from(wheel: Path) -> None:
    """Each committed file of it, and what the build back end adds; it has the version of the wheel."""
    _, version, *_ = wheel.name.split("-")
    with tarfile.open(wheel.with_name(f"spark_app-{version}.tar.gz")) as sdist:
        names = {member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()}
    added = {name for name in names if ".egg-info/" in name} | {"PKG-INFO", "setup.cfg"}
    assert names - added == committed("src", "config", *STACK) | SOURCES


def test_the_program_says_the_version_of_the_wheel(tool: Path, wheel: Path, tmp_path: Path) -> None:
    """`make release` asks the program of the image the same."""
    _, version, *_ = wheel.name.split("-")
    assert ran([tool / "bin" / "spark-app", "--version"], tmp_path).stdout == f"spark-app {version}\n"


def test_an_installed_program_observes_an_older_spark_and_writes_only_to_the_project(
    tool: Path, older_spark: Path, tmp_path: Path
) -> None:
    """The report, the event log and the run profile are below `.spark-app/`."""
    before = files(tool)
    (application,) = observed([tool / "bin" / "spark-app"], older_spark, tmp_path).applications
    assert (application.name, application.outcome, application.spark_version) == ("seven", "succeeded", "3.5.9")
    assert Path(tmp_path, application.report).is_relative_to(tmp_path / ".spark-app" / "reports")
    assert files(tool) == before
    assert {path.name for path in tmp_path.iterdir()} == {".spark-app", "job.py", "keys", "observed.json"}


def test_uvx_observes_a_program_with_this_spark(wheel: Path, tmp_path: Path) -> None:
    """As the README says, in an empty folder."""
    command: list[str | Path] = [UV, "tool", "run", "--from", wheel, "spark-app"]
    (application,) = observed(command, Path(sys.executable), tmp_path).applications
    assert (application.outcome, application.spark_version) == ("succeeded", "4.2.0")
    assert (tmp_path / ".spark-app" / "reports" / "index.html").is_file()


@pytest.mark.parametrize("path", ["", ".", "/app"])
def test_packages_of_a_job_with_names_of_ours_hinder_nobody(tool: Path, tmp_path: Path, path: str) -> None:
    """A folder `app` and a folder `spark_app` beside a job: the job imports them, and the command its own library."""
    for name in ("app", "spark_app"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OF = 'the job'\n", encoding="utf-8")
    (tmp_path / "job.py").write_text("import app, spark_app; print(app.OF, spark_app.OF)\n", encoding="utf-8")
    given = {"PYTHONPATH": path} if path else {}
    done = ran([tool / "bin" / "spark-app", "observe", "--", sys.executable, "job.py"], tmp_path, **given)
    assert (done.returncode, "the job the job" in done.stdout) == (0, True), done.stderr


def test_a_command_that_needs_spark_says_what_to_install(tool: Path, tmp_path: Path) -> None:
    """Its extra; nothing is written."""
    done = ran([tool / "bin" / "spark-app", "etl", "--date", "2024-01-01"], tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "install spark-app[etl]" in done.stderr
    assert [*tmp_path.iterdir()] == []
