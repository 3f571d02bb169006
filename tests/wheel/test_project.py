"""A project of one's own from the wheel: written, tested and run in an environment that has only the wheel."""

import json
import sys
from pathlib import Path

import pytest

from tests.wheel.conftest import UV, installed, ran


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel, what its extra brings, and pytest."""
    folder = tmp_path_factory.mktemp("environment")
    ran([UV, "venv", "--python", sys.executable, folder / "venv"], folder).check_returncode()
    return installed(folder / "venv", wheel)


@pytest.fixture(scope="module")
def shop(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that `spark-app init` writes into an empty folder."""
    folder = tmp_path_factory.mktemp("shop")
    ran([python.with_name("spark-app"), "init", "shop"], folder).check_returncode()
    return folder


def test_the_test_of_a_written_project_passes(python: Path, shop: Path) -> None:
    """Rows in, tables out."""
    done = ran([python, "-m", "pytest", "--quiet"], shop)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_a_written_project_runs(python: Path, shop: Path) -> None:
    """Its day is published with a report, from a folder below it, too; nothing is written beside the project."""
    command = python.with_name("spark-app")
    done = ran([command, "etl", "--date", "2024-01-01", "--json"], shop / "tests")
    assert done.returncode == 0, done.stderr
    [run] = json.loads(done.stdout)["runs"]
    assert (run["outcome"], run["counts"]["published"]) == ("succeeded", 200)
    shown = ran([command, "show", "daily_orders", "--json"], shop)
    assert {row["country"]: row["orders"] for row in json.loads(shown.stdout)["rows"]} == dict.fromkeys(
        ("DE", "FR", "IT", "PL"), 50
    )
    assert len([*(shop / "reports").glob("*.html")]) == 2
    done = ran([command, "streaming", "--available-now", "--json"], shop)
    assert done.returncode == 0, done.stderr
    shown = ran([command, "show", "views_per_page", "--limit", "500", "--json"], shop)
    assert sum(row["views"] for row in json.loads(shown.stdout)["rows"]) > 100


def test_a_project_gets_its_stack(python: Path, shop: Path, wheel: Path) -> None:
    """With the wheel that its image is built of; a second time writes what is missing, and nothing over a change."""
    command: list[str | Path] = [python.with_name("spark-app"), "init", "shop", "--stack", "--json"]
    first = ran(command, shop)
    assert first.returncode == 0, first.stderr
    files = json.loads(first.stdout)["files"]
    chart = {"stack/charts/spark-app/Chart.yaml", "stack/charts/spark-app/files/collector.yaml"}
    assert {"stack/.env", "stack/Dockerfile", "stack/docker-compose.full.yml"} | chart <= set(files)
    assert not [file for file in files if not file.startswith("stack/")]
    assert (shop / "stack" / "wheels" / wheel.name).read_bytes() == wheel.read_bytes()
    assert f"LIBRARY=wheels/{wheel.name}\n" in (shop / "stack" / ".env").read_text(encoding="utf-8")
    assert (shop / "stack" / "compose" / ".env").readlink() == Path("../.env.local")
    (shop / "stack" / "compose" / "full.yml").unlink()
    assert json.loads(ran(command, shop).stdout)["files"] == ["stack/compose/full.yml"]
    (shop / "stack" / "Dockerfile").write_text("FROM mine\n", encoding="utf-8")
    done = ran(command, shop)
    assert done.returncode == 2
    assert "stack/Dockerfile is here with another content: rename it" in json.loads(done.stdout)["error"]["message"]


def test_a_mistake_is_one_line_with_its_place(python: Path, shop: Path) -> None:
    """Before Spark starts, with the nearest right name."""
    module = shop / "shop" / "etl" / "daily_orders.py"
    text = module.read_text(encoding="utf-8")
    module.write_text(text.replace('expect.at_least("orders", 1)', 'expect.at_least("order", 1)'), encoding="utf-8")
    try:
        done = ran([python.with_name("spark-app"), "etl", "--date", "2024-01-01"], shop)
    finally:
        module.write_text(text, encoding="utf-8")
    assert done.returncode == 2
    assert done.stderr == (
        "error: shop/etl/daily_orders.py:44: daily_orders expects something of order, which its schema does not have: "
        "do you mean orders?\n"
    )
