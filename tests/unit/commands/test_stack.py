"""The stack of a project: what the wheel carries, with the project's names."""

from pathlib import Path
from typing import Final

import pytest
import yaml

from spark_app.commands import stack

VALUES: Final = """
image:
  repository: spark-app
collector:
  image: otel/collector
pipelines:
  image: ""  # of the project
  folder: ""
"""


def written(file: Path, text: str) -> None:
    """Writes a file and its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.fixture
def carried(tmp_path: Path) -> tuple[Path, Path]:
    """The two folders of a wheel, as small as they can be."""
    pins = "# pins\nCOMPOSE_PROJECT_NAME=spark-app\nKAFKA_IMAGE=apache/kafka:4.3.1\nSPARK_APP_IMAGE=spark-app:0.1.0\n"
    written(tmp_path / "stack" / ".env", pins)
    written(tmp_path / "stack" / "charts" / "spark-app" / "values.yaml", VALUES)
    written(tmp_path / "stack" / "scripts" / "start.py", "pass\n")
    written(tmp_path / "stack" / "scripts" / "__pycache__" / "start.pyc", "compiled when the wheel was installed")
    written(tmp_path / "config" / "otel" / "collector.yaml", "receivers: {}\n")
    return tmp_path / "stack", tmp_path / "config"


def test_files_lie_as_in_a_clone(carried: tuple[Path, Path]) -> None:
    """So that the paths of the compose files lead to them; the user's variables are in no repository."""
    folder, config = carried
    files = stack.contents("shop", "spark-app==1", carried=folder, config=config)
    names = [".env", ".gitignore", "charts/spark-app/values.yaml", "config/otel/collector.yaml", "scripts/start.py"]
    assert sorted(files) == [f"stack/{name}" for name in names]
    assert files["stack/config/otel/collector.yaml"] == "receivers: {}\n"
    assert files["stack/.gitignore"] == ".env.local\n"


def test_variables_are_those_of_the_project(carried: tuple[Path, Path]) -> None:
    """Its volumes and images are no other project's; it is mounted from the folder above `stack/`."""
    folder, config = carried
    lines = stack.contents("My_Shop", "wheels/a.whl", carried=folder, config=config)["stack/.env"].splitlines()
    variables = dict(line.split("=", maxsplit=1) for line in lines if line and not line.startswith("#"))
    assert variables == {
        "COMPOSE_PROJECT_NAME": "my-shop",
        "KAFKA_IMAGE": "apache/kafka:4.3.1",
        "SPARK_APP_IMAGE": stack.image("My_Shop"),
        "PROJECT_FOLDER": "../..",
        "LIBRARY": "wheels/a.whl",
    }
    assert stack.image("My_Shop").startswith("my-shop:")


def test_the_chart_runs_the_project_in_its_images(carried: tuple[Path, Path]) -> None:
    """What it is built from stays a value, and comments stay."""
    folder, config = carried
    text = stack.contents("My_Shop", "wheels/a.whl", carried=folder, config=config)[
        "stack/charts/spark-app/values.yaml"
    ]
    assert yaml.safe_load(text) == {
        "image": {"repository": "my-shop"},
        "collector": {"image": "otel/collector"},
        "pipelines": {"image": f"{stack.image('My_Shop')}-project", "folder": "/project"},
    }
    assert "# of the project" in text


def test_a_pin_that_cannot_be_found_is_no_stack_of_another_project(carried: tuple[Path, Path]) -> None:
    """A wheel whose files have changed does not write a stack that takes the volumes of the demo shop."""
    folder, config = carried
    written(folder / ".env", "SPARK_APP_IMAGE=spark-app:0.1.0\n")
    with pytest.raises(ValueError, match="0 lines begin with 'COMPOSE_PROJECT_NAME"):
        stack.contents("shop", "wheels/a.whl", carried=folder, config=config)


@pytest.mark.parametrize(
    ("name", "expected"), [("shop", "shop"), ("My_Shop", "my-shop"), ("_x", "x"), ("ö", "project")]
)
def test_the_name_is_one_for_compose(name: str, expected: str) -> None:
    """Lower case, and a letter first."""
    assert stack.compose_name(name) == expected
