"""What a docstring says of columns is what the function does, and every column of a table says what it means."""

import datetime
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from app import schemas
from spark_app.declarations.query import DeclaredQuery
from spark_app.execution.pipelines import declared_tables
from spark_app.settings import config_folder, load_pipeline_config
from spark_app.warehouse import schemas as of_library

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("etl", "streaming", "ml")
DAY: Final = datetime.date(2024, 1, 1)
GIVEN: Final = {"date": DAY, "first": DAY, "last": DAY, "label_days": 1}
SCHEMAS: Final = {table.name: table.schema for table in declared_tables()} | {
    name: value for name, value in (vars(of_library) | vars(schemas)).items() if isinstance(value, StructType)
}


def transforms() -> Iterator[Callable[..., DataFrame]]:
    """The public functions of the pipelines that make rows of rows."""
    for path in sorted(path for package in PACKAGES for path in (ROOT / "app" / package).glob("[!_]*.py")):
        module = importlib.import_module(f"app.{path.parent.name}.{path.stem}")
        for name, value in vars(module).items():
            function = getattr(value, "function", value)
            is_own = inspect.isfunction(function) and function.__module__ == module.__name__
            if is_own and not name.startswith("_") and inspect.signature(function).return_annotation is DataFrame:
                yield function


TRANSFORMS: Final = list(transforms())


def documented(function: Callable[..., Any], heading: str) -> list[str]:
    """What a docstring says after a heading, one text per parameter; the remark after a comma or in brackets is cut."""
    found = re.search(rf"^Columns {heading}: (.+?)\.$", inspect.getdoc(function) or "", re.MULTILINE | re.DOTALL)
    assert found, f"{function.__module__}.{function.__name__} does not say `Columns {heading}:`"
    return [re.sub(r"\s*\(.*?\)", "", part).strip() for part in found[1].split(";")]


def frames(function: Callable[..., Any], spark: SparkSession) -> dict[str, DataFrame]:
    """An empty frame for each parameter, with the columns that are documented for it."""
    names = [name for name, value in inspect.signature(function).parameters.items() if value.annotation is DataFrame]
    given: dict[str, DataFrame] = {}
    for part in documented(function, "in"):
        found = re.match(r"(?:(\w+): )?those of `(\w+)`", part)
        if found:
            given[found[1] or names[0]] = spark.createDataFrame([], SCHEMAS[found[2]])
    assert list(given) == names
    return given


def configured(transform: Callable[..., DataFrame]) -> dict[str, Any]:
    """What an operator tunes of its pipeline, for a query that has such options."""
    wanted = [each.name for each in inspect.signature(transform).parameters.values() if each.kind is each.KEYWORD_ONLY]
    module = importlib.import_module(transform.__module__)
    queries = [value for value in vars(module).values() if isinstance(value, DeclaredQuery)]
    if not queries:
        return {}
    config = load_pipeline_config(module.__name__.removeprefix("app."), queries[0].config, config_folder())
    return {name: getattr(config, name) for name in wanted}


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda function: f"{function.__module__}.{function.__name__}")
def test_documented_columns_are_the_real_ones(transform: Callable[..., DataFrame], spark: SparkSession) -> None:
    """`Columns out` names just the columns that come out, in their order, and with the types of a schema."""
    given = frames(transform, spark)
    known = {name: value for name, value in GIVEN.items() if name in inspect.signature(transform).parameters}
    made = transform(**given, **known, **configured(transform))
    said = documented(transform, "out")[0]
    whole = re.fullmatch(r"those of `([\w.]+)`", said)
    if whole:
        assert [(field.name, field.dataType) for field in made.schema] == [
            (field.name, field.dataType) for field in SCHEMAS[whole[1]]
        ]
    else:
        first = next(iter(given.values()))
        names = said.removeprefix("those of the rows, ").split(", ")
        assert made.columns == (first.columns if said.startswith("those of the rows") else []) + names


def test_there_are_transforms_to_look_at() -> None:
    """The search above finds the heart of the main job."""
    assert {"customer_versions", "transactions", "daily_sales"} <= {function.__name__ for function in TRANSFORMS}


def test_every_column_of_a_table_says_what_it_means() -> None:
    """In its comment, which goes into the table itself."""
    columns = [(table.name, field) for table in declared_tables() for field in table.schema]
    assert [(name, field.name) for name, field in columns if not field.metadata.get("comment")] == []
