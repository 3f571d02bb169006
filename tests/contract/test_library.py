"""The library stands without the project: it names nothing of the shop, and reports where there is none."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import spark_app
from spark_app.execution import pipelines
from spark_app.models import registry
from tests.eventlogs import golden

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "src" / "spark_app"
OF_LIBRARY = {"dead_letters", "dead_letter_replays", *(table.name for table in registry.TABLES)}
"""Tables that every project has."""
WORDS = {"events"}
"""Names of the shop that are words of everybody."""
WITHOUT = "import sys; sys.modules['app'] = None; from spark_app.__main__ import run; sys.exit(run(sys.argv[1:]))"


def texts(file: Path) -> Iterator[str]:
    """The texts in the code of a file, without its docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node.value


def test_the_library_names_nothing_of_the_shop() -> None:
    """No table, topic, source or pipeline of it is a text in its code."""
    loaded = {name: each for package in pipelines.PACKAGES for name, each in pipelines.load(package).items()}
    names = {table.name for table in pipelines.declared_tables()} - OF_LIBRARY - WORDS
    names |= {*loaded, *(topic.name for topic in pipelines.topics()), *pipelines.sources(loaded.values())}
    assert len(names) > 20
    found = {
        file.relative_to(ROOT).as_posix(): sorted(names & set(texts(file)))
        for file in LIBRARY.rglob("*.py")
        if names & set(texts(file))
    }
    assert found == {}


@pytest.mark.parametrize("command", [("report",), ("lineage",)])
def test_without_a_project_any_application_is_seen(tmp_path: Path, command: tuple[str, ...]) -> None:
    """In a folder where no project is, with a Python that has no package `app`."""
    log = golden.log("4.2.0", "plain", tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *command, str(log)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_the_pipelines_of_the_shop_stand_on_the_public_names() -> None:
    """As those of a user do; only what generates the shop's data uses more of the library."""
    files = [file for file in (ROOT / "app").rglob("*.py") if file.name != "__main__.py"]
    files = [file for file in files if "demo" not in file.relative_to(ROOT).parts]
    assert len(files) > 15
    nodes = [(file.name, node) for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    imported = {
        (name, node.module, alias.name)
        for name, node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "spark_app"
        for alias in node.names
    }
    assert imported
    assert {each for each in imported if each[1] != "spark_app" or each[2] not in spark_app.__all__} == set()
