"""The program of a command by its name, as a person calls it."""

from pathlib import Path

import pytest

from spark_app.observe.program_names import can_type, name_of


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python jobs/flights.py 2024-01-01", "flights"),
        ("env A=1 /opt/python3 -u flights.py other.py", "flights"),
        ("python -m shop.daily", "shop.daily"),
        ("spark-submit --py-files libs.zip flights.py", "flights"),
        ("bash run.sh", ""),
        ("python -m", ""),
        ("", ""),
    ],
)
def test_a_program_is_called_by_its_file_or_its_module(command: str, name: str) -> None:
    """The first that the command names; a script of a shell may start several."""
    assert name_of(command.split()) == name


def test_a_pipeline_is_called_by_its_specification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the working folder, or the one that an option names; one that cannot be read has no name."""
    monkeypatch.chdir(tmp_path)
    assert name_of(["spark-pipelines", "run"]) == "spark-pipelines"
    (tmp_path / "spark-pipeline.yml").write_text("name: shop\n")
    (tmp_path / "other.yml").write_text("name: sales\n")
    (tmp_path / "broken.yml").write_text("a: [\n")
    assert name_of(["/opt/bin/spark-pipelines", "run"]) == "shop"
    assert name_of(["spark-pipelines", "run", "--spec", "other.yml"]) == "sales"
    assert name_of(["spark-pipelines", "run", "--spec=other.yml"]) == "sales"
    assert name_of(["spark-pipelines", "run", "--spec", "broken.yml"]) == "spark-pipelines"


@pytest.mark.parametrize(
    ("command", "is_typed"),
    [
        ("python jobs/flights.py 2024-01-01", False),
        ("spark-submit --py-files libs.zip flights.py", False),
        ("/opt/spark/bin/pyspark --master local[2]", True),
        ("python -i flights.py", True),
        ("python -m jupyterlab", True),
        ("streamlit run page.py", True),
    ],
)
def test_somebody_types_into_shells_and_notebooks(command: str, *, is_typed: bool) -> None:
    """And uses pages that a program serves; a script runs alone."""
    assert can_type(command.split()) == is_typed
