"""What a module of `app/ml/` declares of its model; `spark_app.pipeline.lifecycle` does the same for every model."""

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.models.gate import Gate
from spark_app.models.inputs import Examples, Feature, FeatureSource
from spark_app.models.periods import Periods
from spark_app.pipeline.context import Context
from spark_app.settings import Schedule, Share
from spark_app.warehouse.delta_log import last_version
from spark_app.warehouse.tables import Table

Algorithm = Literal["logistic_regression", "random_forest", "gradient_boosted_trees"]


class ModelConfig(BaseModel):
    """What an operator tunes of any model: see `config/ml/refunds.yml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    OF_THE_JUDGEMENT: ClassVar = frozenset({"slices", "parallelism", "bootstrap", "gate", "schedule"})
    """Keys that do not change what is trained."""

    label_days: int = Field(ge=1)
    history_days: int = Field(ge=1)
    held_out_days: int = Field(ge=1)
    slices: list[str]
    flagged_share: Share
    seed: int = Field(ge=0)
    partitions: int = Field(ge=1)
    folds: int = Field(ge=2)
    parallelism: int = Field(ge=1)
    bootstrap: int = Field(ge=1)
    candidates: dict[Algorithm, dict[str, list[int | float]]] = Field(min_length=1)
    gate: Gate
    schedule: Schedule | None


@dataclass(frozen=True)
class Model:
    """A model.

    Attributes:
        name: `ml.refunds`: its module, its configuration, its label in metrics and its versions in the registry.
        examples: The rows that it is about.
        reads: The tables with what it is trained on.
        scores: The table that the scores of a day are written to.
        features: Its inputs.
        window_days: How many days before an example its features look at.
        inputs: Makes the features of the examples of the days `first` to `last`, from the tables, each by its name:
            the keys of the examples and the columns of the features. It sees the days before, too.
        labels: Makes their labels, from the same and `label_days`, after which they are known: the key of the example,
            and 1.0 for the rare class or else 0.0.
    """

    name: str
    examples: Examples
    reads: Sequence[str]
    scores: Table
    features: Sequence[Feature]
    window_days: int
    inputs: Callable[..., DataFrame]
    labels: Callable[..., DataFrame]

    @property
    def source(self) -> FeatureSource:
        """What computes its features."""
        return FeatureSource(self.examples, self.reads, self.inputs)

    @property
    def categories(self) -> list[str]:
        """The features that are text."""
        return [feature.name for feature in self.features if feature.kind == "category"]

    @property
    def numbers(self) -> list[str]:
        """The features that are numbers."""
        return [feature.name for feature in self.features if feature.kind == "number"]

    def periods(self, config: ModelConfig, last: datetime.date) -> Periods:
        """The days of a history that train and judge."""
        return Periods.of(
            last,
            history_days=config.history_days,
            window_days=self.window_days,
            held_out_days=config.held_out_days,
            label_days=config.label_days,
        )


@dataclass(frozen=True)
class Data:
    """Labelled rows, in memory.

    Attributes:
        train: Those that train.
        held_out: Those that judge.
        periods: Their days.
        versions: Versions of the tables that they were read from.
    """

    train: DataFrame
    held_out: DataFrame
    periods: Periods
    versions: dict[str, int]


@contextmanager
def labelled_data(
    context: Context,
    model: Model,
    config: ModelConfig,
    last: datetime.date,
    versions: Mapping[str, int] | None = None,
    *,
    has_train: bool = True,
) -> Iterator[Data]:
    """The rows as of the end of a day, of the tables as they are now or at versions; those that train, if wanted."""
    from spark_app.models import estimators  # Spark ML takes a second to import, which most commands need not

    periods = model.periods(config, last)
    found = dict(versions or {name: last_version(context.spark, context.warehouse.path(name)) for name in model.reads})
    tables = {name: context.table(name, version=found[name]) for name in model.reads}
    days = {"first": periods.first if has_train else periods.held_out_first, "last": periods.held_out_last}
    inputs, labels = model.inputs(**tables, **days), model.labels(**tables, **days, label_days=config.label_days)
    key, day = model.examples.key, F.to_date(model.examples.at)
    rows = inputs.join(labels, key)
    ordered = estimators.in_order(rows, key, partitions=config.partitions).persist()
    try:
        train = ordered.where(day.between(periods.first, periods.train_last))
        held_out = ordered.where(day.between(periods.held_out_first, periods.held_out_last))
        yield Data(train, held_out, periods, found)
    finally:
        ordered.unpersist()
