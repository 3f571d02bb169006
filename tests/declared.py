"""Pipelines for tests of what runs them, which declare only what a test is about."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from spark_app.declarations.pipeline import Pipeline
from spark_app.engine.code_location import CodeLocation


def pipeline(name: str = "etl.any", **given: Any) -> Pipeline:
    """A pipeline; `run` and `query` are functions, all else is as `Pipeline` says."""
    work: dict[str, Callable[..., Any]] = {each: given.pop(each) for each in ("run", "query") if each in given}
    made = Pipeline(name=name, location=CodeLocation(__file__, 1), config=BaseModel, **given)
    vars(made).update(work)
    return made
