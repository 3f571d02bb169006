"""Compose accepts the stack that `spark-app init --stack` writes into a project, and finds all of its files there."""

import json
import os
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from spark_app.commands import stack
from spark_app.commands.init import contents, write
from tests.stack.test_tools import COMPOSE, ROOT

CHART: Final = ROOT / "charts" / "spark-app"
PATTERNS: Final[dict[str, list[str]]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "setuptools"
]["package-data"]


def packed(package: str, folder: Path, to: Path) -> Path:
    """A folder with what the wheel carries of another one as a package; tests/wheel compares it with the wheel."""
    found = {path.relative_to(folder): path for pattern in PATTERNS[package] for path in folder.glob(pattern)}
    write({str(name): path.read_text(encoding="utf-8") for name, path in found.items() if path.is_file()}, to)
    return to


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with its stack."""
    carried = packed("spark_app.stack", ROOT, tmp_path / "carried")
    config = packed("spark_app.config", ROOT / "config", tmp_path / "config")
    files = stack.contents("shop", "wheels/a.whl", carried=carried, config=config)
    write(contents("shop", "shop") | files, tmp_path / "shop")
    stack.link_variables(tmp_path / "shop")
    return tmp_path / "shop"


def configured(shop: Path, file: str, **variables: str) -> dict[str, Any]:
    """The services that Compose reads in the folder of the stack."""
    command = ["docker", "compose", "-f", file, "config", "--format", "json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMPOSE_")} | variables
    done = subprocess.run(command, cwd=shop / "stack", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    assert content["name"] == "shop"
    services: dict[str, Any] = content["services"]
    return services


def binds(services: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The target and the source of each file or folder of the machine that containers see."""
    for service in services.values():
        yield from ((each["target"], each["source"]) for each in service.get("volumes", []) if each["type"] == "bind")


def test_every_file_that_containers_see_is_in_the_project(shop: Path) -> None:
    """With each of the compose files; and so is what the image is built of."""
    for file in COMPOSE:
        sources = {Path(source) for _, source in binds(configured(shop, file))}
        assert sources
        assert [path for path in sources if not path.exists() or not path.is_relative_to(shop)] == []
    build = configured(shop, COMPOSE[0])["spark-master"]["build"]
    assert (build["context"], build["args"]["LIBRARY"]) == (str(shop / "stack"), "wheels/a.whl")
    assert {"Dockerfile", ".dockerignore", "config", "requirements-image.txt", "scripts"} <= {
        path.name for path in (shop / "stack").iterdir()
    }


def test_the_project_is_mounted_or_built_in_by_one_line(shop: Path) -> None:
    """Mounted at first; built in, nothing hides what the image has, and its base is the image of spark-app."""
    mounted = configured(shop, COMPOSE[-1])
    assert dict(binds({"": mounted["spark-worker-1"]})) == {"/project": str(shop)}
    assert mounted["spark-master"]["image"] == stack.image("shop")
    (shop / "stack" / ".env.local").write_text("PROJECT_BUILD=../..\n", encoding="utf-8")
    built = configured(shop, COMPOSE[-1])
    for name in ("spark-master", "spark-worker-1", "spark-worker-2", "kafka-topics"):
        assert built[name]["image"] == f"{stack.image('shop')}-project"
        assert "/project" not in dict(binds({"": built[name]}))
        assert built[name]["working_dir"] == "/project"
    build = built["spark-master"]["build"]
    assert (build["context"], build["args"]["SPARK_APP_IMAGE"]) == (str(shop), stack.image("shop"))
    assert (shop / build["dockerfile"]).exists()
    assert built["spark-history"]["build"]["context"] == str(shop / "stack")


def test_the_chart_has_the_images_that_compose_builds_and_all_of_its_files(shop: Path) -> None:
    """It is complete without the stack around it, as a packed chart is; its values are those of its schema."""
    chart = shop / "stack" / "charts" / "spark-app"
    names = {
        Path(folder, file).relative_to(CHART).as_posix()
        for folder, _, files in os.walk(CHART, followlinks=True)
        for file in files
    }
    assert {file.relative_to(chart).as_posix() for file in chart.rglob("*") if file.is_file()} == names
    assert not [file for file in chart.rglob("*") if file.is_symlink()]
    values = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))
    built = configured(shop, COMPOSE[0], PROJECT_BUILD="../..")
    version = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"]
    assert f"{values['image']['repository']}:{version}" == built["spark-history"]["image"]
    assert values["pipelines"]["image"] == built["spark-master"]["image"]
    assert values["pipelines"]["folder"] == built["spark-master"]["working_dir"]
