"""The project of a folder is found, imported, and told from others of its name."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_app import project
from spark_app.errors import ConfigError
from spark_app.project import Project

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Path]:
    """A folder with a project whose package is `their_shop`."""
    package = tmp_path / "their_shop" / "etl"
    package.mkdir(parents=True)
    (package / "sales.py").write_text("NAME = 'sales'\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.spark-app]\npackage = "their_shop"\n', encoding="utf-8")
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    for name in [name for name in sys.modules if name.partition(".")[0] == "their_shop"]:
        del sys.modules[name]


def test_a_project_is_found_from_the_folders_below_it(shop: Path) -> None:
    """As git finds its repository; the nearest one counts."""
    deep = shop / "jobs" / "nightly"
    deep.mkdir(parents=True)
    (shop / "jobs" / "pyproject.toml").write_text("[tool.black]\n", encoding="utf-8")
    assert project.find(deep) == Project(shop, "their_shop")
    (shop / "jobs" / "pyproject.toml").write_text("[tool.spark-app]\n", encoding="utf-8")
    assert project.find(deep) == Project(shop / "jobs", "app")


@pytest.mark.parametrize("content", ["", "[tool.black]\n", "tool = 1\n", "not TOML", "[tool]\nspark-app = 1\n"])
def test_other_projects_are_none_of_ours(tmp_path: Path, content: str) -> None:
    """Whatever is in their files: to observe a job, they need not be readable."""
    (tmp_path / "pyproject.toml").write_text(content, encoding="utf-8")
    assert project.find(tmp_path) in (None, project.find(tmp_path.parent))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[tool.spark-app]\npakage = 'shop'\n", "unknown key 'pakage' in [tool.spark-app]; allowed are package, demo"),
        ("[tool.spark-app]\npackage = 1\n", "package in [tool.spark-app] must be the name of a Python module, not 1"),
        ("[tool.spark-app]\ndemo = 'my shop'\n", "demo in [tool.spark-app] must be the name of a Python module"),
        ("[tool.spark-app\n", "is not valid TOML"),
    ],
)
def test_a_mistake_in_the_table_is_named(tmp_path: Path, content: str, problem: str) -> None:
    """With the file."""
    (tmp_path / "pyproject.toml").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        project.find(tmp_path)
    assert str(tmp_path / "pyproject.toml") in str(raised.value)
    assert problem in str(raised.value)


def test_the_modules_of_a_project_are_loaded_from_its_folder(shop: Path) -> None:
    """Also where Python's path does not have it yet."""
    found = project.find(shop)
    assert found is not None
    assert found.folder_of("etl") == shop / "their_shop" / "etl"
    assert found.load("etl.sales").NAME == "sales"
    assert found.load_demo() is None


def test_another_package_of_the_same_name_is_told(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`PYTHONPATH` may have one: its pipelines would run instead."""
    other = tmp_path / "other" / "their_shop"
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(other.parent))
    sys.path.append(str(shop))
    with pytest.raises(ConfigError, match=r"Python imports their_shop from .*/other/their_shop, not from the project"):
        Project(shop, "their_shop").load("etl.sales")


def test_the_clone_is_a_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also for a command that is given in another folder."""
    assert project.required().folder == ROOT
    monkeypatch.chdir(tmp_path)
    assert project.current() == project.find(ROOT)


def test_without_a_project_the_line_says_what_one_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As with an installed wheel, in a folder of somebody else; observing needs none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(project, "HERE", tmp_path)
    assert project.current() is None
    with pytest.raises(ConfigError, match=r"no project in .*: no pyproject.toml .* `spark-app init NAME` writes one"):
        project.required()


def test_a_project_that_cannot_be_read_is_not_replaced_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a folder that only its owner can read is mounted into a container."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ConfigError, match=rf"user \d+ cannot read the project in {tmp_path}: let its owner run chmod"):
        project.required()
