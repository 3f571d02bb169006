"""`spark-app init` writes into an empty folder, and nothing over what is there."""

import json
from pathlib import Path

import pytest

from spark_app import __main__ as program
from spark_app.commands.init import contents


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


@pytest.mark.parametrize("name", ["1shop", "class", "spark-app", "tests", "my shop", "shop.etl", ""])
def test_a_name_that_python_cannot_import_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is written."""
    monkeypatch.chdir(tmp_path)
    assert program.run(["init", name]) == 2
    assert "cannot be the name of a Python package: choose another, such as shop" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []
