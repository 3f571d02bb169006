"""`spark-app init` writes into an empty folder, and nothing over what is there."""

import json
from pathlib import Path

import pytest

from spark_app import __main__ as program
from spark_app.commands.init import contents, is_here, write
from spark_app.errors import UsageError


def test_a_project_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file once; the package has the name of the project, as Python can import it."""
    monkeypatch.chdir(tmp_path)
    assert program.run(["init", "my-shop", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {*contents("my-shop", "my_shop")} == {*answer["files"]}
    assert {"my_shop/etl/daily_orders.py", ".gitignore", ".github/workflows/ci.yml"} <= written
    assert not any("{{" in (tmp_path / name).read_text(encoding="utf-8") for name in written)


def test_what_is_there_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names it; nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    assert program.run(["init", "shop"]) == 2
    assert capsys.readouterr().err == "error: README.md is here already: choose an empty folder\n"
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


@pytest.mark.parametrize("name", ["1shop", "class", "spark-app", "tests", "stack", "my shop", "shop.etl", ""])
def test_a_name_that_python_cannot_import_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is written."""
    monkeypatch.chdir(tmp_path)
    assert program.run(["init", name]) == 2
    assert "cannot be the name of a Python package: choose another, such as shop" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_the_stack_is_that_of_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A clone has a stack already, and no wheel to build an image with; nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert program.run(["init", "shop", "--stack"]) == 2
    assert "--stack needs an installed wheel, which `make wheel` builds" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_a_project_that_is_here_gets_a_stack_only(tmp_path: Path) -> None:
    """By the name of its package; a folder above is not here."""
    (tmp_path / "pyproject.toml").write_text('[tool.spark-app]\npackage = "my_shop"\n', encoding="utf-8")
    (tmp_path / "below").mkdir()
    assert is_here(tmp_path, "my_shop")
    assert not is_here(tmp_path / "below", "my_shop")
    with pytest.raises(UsageError, match="this is the project of the package my_shop: spark-app init my_shop --stack"):
        is_here(tmp_path, "shop")


def test_scripts_can_be_executed(tmp_path: Path) -> None:
    """Whatever the tool does that installs a wheel."""
    write({"stack/scripts/start.sh": "true\n", "README.md": "mine"}, tmp_path)
    assert (tmp_path / "stack" / "scripts" / "start.sh").stat().st_mode & 0o111 == 0o111
    assert (tmp_path / "README.md").stat().st_mode & 0o111 == 0
