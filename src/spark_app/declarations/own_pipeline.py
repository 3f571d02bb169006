"""A pipeline that a module writes itself: what it does not name is as for every pipeline of its package."""

from types import ModuleType
from typing import Any, Final

from pydantic import BaseModel, create_model

from spark_app.declarations.pipeline import Pipeline
from spark_app.engine.code_location import CodeLocation
from spark_app.engine.ingest import DailyConfig
from spark_app.engine.model import ModelConfig
from spark_app.engine.stream_config import StreamConfig
from spark_app.warehouse.tables import Table

CONFIGS: Final[dict[str, type[BaseModel]]] = {"etl": DailyConfig, "streaming": StreamConfig, "ml": ModelConfig}
"""What an operator tunes of a module that has no `Config`."""
NAMED: Final = ("SOURCES", "READS", "WRITES", "TOPICS", "SENDS", "MODELS")
"""What a module may say of what it reads and writes."""


def own_pipeline(name: str, module: ModuleType) -> Pipeline:
    """A module with a function that does all itself: `run(context, config)`, or `query(context, config)` of a stream.

    Raises:
        DeclarationError: It has no such function, or writes what is no table.
    """
    package, values = name.split(".", maxsplit=1)[0], vars(module)
    work = "query" if package == "streaming" else "run"
    if not callable(values.get(work)):
        raise CodeLocation(module.__file__ or name, 1).error(
            f"{name} is no pipeline: declare a function with a decorator of spark_app, define {work}(context, "
            "config), or let the name of a module that only helps others begin with _"
        )
    named: dict[str, Any] = {each.lower(): tuple(values.get(each, ())) for each in NAMED}
    location = CodeLocation.of(values[work])
    for table in named["writes"]:
        if not isinstance(table, Table):
            raise location.error(
                f"{name} writes {table!r} (WRITES), which is no table: give its name and its schema to "
                "spark_app.warehouse.tables.Table"
            )
    config = values.get("Config") or create_model("Config", __base__=CONFIGS[package])
    starts_first = values.get("STARTS_FIRST", False)
    pipeline = Pipeline(name=name, location=location, config=config, starts_first=starts_first, **named)
    setattr(pipeline, work, values[work])
    return pipeline
