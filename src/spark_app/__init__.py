"""Checked and traced Spark pipelines, and what any Spark application did: the public names.

They are loaded on first use: to observe a program, no Spark is imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spark_app.declarations import daily as daily
    from spark_app.declarations import model as model
    from spark_app.declarations import stream as stream
    from spark_app.declarations.declaration import Source as Source
    from spark_app.declarations.files import files as files
    from spark_app.declarations.jdbc import jdbc as jdbc
    from spark_app.declarations.kafka import kafka as kafka
    from spark_app.declarations.table import table as table
    from spark_app.engine.code_location import schema as schema
    from spark_app.engine.project_metric import Metric as Metric
    from spark_app.engine.topics import Topic as Topic
    from spark_app.quality import expectations as expect
    from spark_app.settings import Settings as Settings

__all__ = [
    "Metric",
    "Settings",
    "Source",
    "Topic",
    "daily",
    "expect",
    "files",
    "jdbc",
    "kafka",
    "model",
    "schema",
    "stream",
    "table",
]
_NAMES: Final = {
    "Metric": ("spark_app.engine.project_metric", "Metric"),
    "Settings": ("spark_app.settings", "Settings"),
    "Source": ("spark_app.declarations.declaration", "Source"),
    "Topic": ("spark_app.engine.topics", "Topic"),
    "daily": ("spark_app.declarations.daily", None),
    "expect": ("spark_app.quality.expectations", None),
    "files": ("spark_app.declarations.files", "files"),
    "jdbc": ("spark_app.declarations.jdbc", "jdbc"),
    "kafka": ("spark_app.declarations.kafka", "kafka"),
    "model": ("spark_app.declarations.model", None),
    "schema": ("spark_app.engine.code_location", "schema"),
    "stream": ("spark_app.declarations.stream", None),
    "table": ("spark_app.declarations.table", "table"),
}
"""The module of each public name, and the name in it; None where the module itself is meant."""


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'spark_app' has no attribute {name!r}")
    module, attribute = _NAMES[name]
    found = import_module(module)
    return found if attribute is None else getattr(found, attribute)
