"""The limits of the rules as they are configured: the keys of `config/diagnoses.yml`.

The docstrings of the rules name their sources: DataFlint (github.com/dataflint/spark, its alert reducers) and Dr.
Elephant (github.com/linkedin/dr-elephant, its heuristics); "project" marks a choice of this project.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from spark_app.eventlog.diagnoses.limits import JUDGEMENT
from spark_app.eventlog.diagnoses.rule import Limit, Rule, rules
from spark_app.settings import config_folder, load_pipeline_config


class Thresholds:
    """The value of each limit, by its key: times in milliseconds, sizes in bytes, shares from 0 to 1."""

    def __init__(self, **configured: Any) -> None:
        """Takes what is configured; all else has its default.

        Raises:
            ValidationError: A key is unknown, or a value is out of its bounds.
        """
        self.values: Mapping[str, Any] = _model()(**configured).model_dump()

    def __getattr__(self, key: str) -> float:
        """The number of a limit."""
        try:
            return float(self.__dict__["values"][key])
        except KeyError as error:
            raise AttributeError(f"no rule declares the limit {key}") from error

    def changed(self, **limits: Any) -> "Thresholds":
        """The same with other values of some."""
        return Thresholds(**{**self.values, **limits})

    def pairs(self, key: str) -> tuple[tuple[int, int], ...]:
        """A limit that is pairs of sizes."""
        return tuple(self.values[key])

    def of(self, rule: Rule) -> dict[str, float]:
        """Those of a rule; without pairs of sizes."""
        return {key: self.values[key] for key, each in rule.limits.items() if not isinstance(each.default, tuple)}


@cache
def all_limits() -> Mapping[str, Limit]:
    """All limits by their keys: first those of how findings are judged, then those of the rules in their order."""
    return JUDGEMENT | {key: limit for rule in rules().values() for key, limit in rule.limits.items()}


@cache
def _model() -> type[BaseModel]:
    fields: dict[str, Any] = {key: (_type(limit), _field(limit)) for key, limit in all_limits().items()}
    return create_model("Thresholds", __config__=ConfigDict(extra="forbid", frozen=True), **fields)


def _type(limit: Limit) -> Any:
    return tuple[tuple[int, int], ...] if isinstance(limit.default, tuple) else type(limit.default)


def _field(limit: Limit) -> Any:
    return Field(limit.default, ge=limit.ge, gt=limit.gt, le=limit.le)


def load_thresholds(folder: Path | None = None) -> Thresholds:
    """The thresholds of `diagnoses.yml` in a configuration folder; a key that is not there has its default.

    Raises:
        ConfigError: A key is unknown or wrong, or the file cannot be read.
    """
    return Thresholds(**load_pipeline_config("diagnoses", _model(), folder or config_folder()).model_dump())
