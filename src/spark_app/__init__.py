"""Checked and traced Spark pipelines, and what any Spark application did: the public names.

They are loaded on first use: to observe a program, no Spark is imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spark_app.pipeline.place import schema as schema
    from spark_app.pipeline.topics import Topic as Topic
    from spark_app.pipelines import daily as daily
    from spark_app.pipelines import model as model
    from spark_app.pipelines import stream as stream
    from spark_app.pipelines.declaration import Source as Source
    from spark_app.quality import expectations as expect
    from spark_app.settings import Settings as Settings

__all__ = ["Settings", "Source", "Topic", "daily", "expect", "model", "schema", "stream"]
_NAMES: Final = {
    "Settings": ("spark_app.settings", "Settings"),
    "Source": ("spark_app.pipelines.declaration", "Source"),
    "Topic": ("spark_app.pipeline.topics", "Topic"),
    "daily": ("spark_app.pipelines.daily", None),
    "expect": ("spark_app.quality.expectations", None),
    "model": ("spark_app.pipelines.model", None),
    "schema": ("spark_app.pipeline.place", "schema"),
    "stream": ("spark_app.pipelines.stream", None),
}
"""The module of each public name, and the name in it; None where the module itself is meant."""


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'spark_app' has no attribute {name!r}")
    module, attribute = _NAMES[name]
    found = import_module(module)
    return found if attribute is None else getattr(found, attribute)
