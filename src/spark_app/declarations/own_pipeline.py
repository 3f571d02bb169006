"""A pipeline that a module writes itself: what it does not name is as for every pipeline of its package."""

from types import ModuleType
from typing import Any, Final

from pydantic import BaseModel, create_model

from spark_app.declarations.daily_pipeline import DailyConfig
from spark_app.engine.code_location import CodeLocation
from spark_app.engine.model import ModelConfig
from spark_app.engine.stream_config import StreamConfig
from spark_app.warehouse.tables import Table

CONFIGS: Final[dict[str, type[BaseModel]]] = {"etl": DailyConfig, "streaming": StreamConfig, "ml": ModelConfig}
"""What an operator tunes of a module that has no `Config`."""


class OwnPipeline:
    """A module with a function that does all itself: `run(context, config)`, or `query(context, config)` of a stream.

    Attributes:
        name: `etl.exports`.
        location: The line of that function.
        SOURCES, READS: The sources and the tables that it reads.
        TOPICS, SENDS: The topics that it reads, and those that it sends to.
        MODELS: The models that it uses.
        WRITES: The tables that it writes.
        STARTS_FIRST: Whether its query starts before the others, each of which would delay its first rows.
        Config: What an operator tunes.
    """

    def __init__(self, name: str, module: ModuleType) -> None:
        """The pipeline of a module.

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
        self.name, self.location = name, CodeLocation.of(values[work])
        setattr(self, work, values[work])
        self.SOURCES, self.READS, self.TOPICS, self.SENDS, self.MODELS = (
            tuple(values.get(each, ())) for each in ("SOURCES", "READS", "TOPICS", "SENDS", "MODELS")
        )
        self.WRITES: tuple[Table, ...] = tuple(values.get("WRITES", ()))
        for table in self.WRITES:
            self._require_table(table)
        self.STARTS_FIRST: bool = values.get("STARTS_FIRST", False)
        self.Config: type[BaseModel] = values.get("Config") or create_model("Config", __base__=CONFIGS[package])

    def _require_table(self, table: Any) -> None:
        if not isinstance(table, Table):
            raise self.location.error(
                f"{self.name} writes {table!r} (WRITES), which is no table: give its name and its schema to "
                "spark_app.warehouse.tables.Table"
            )
