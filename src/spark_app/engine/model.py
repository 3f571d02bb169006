"""A model as a module of `app/ml/` declares it; `spark_app.engine.training_phases` does the same for every model."""

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.engine.code_location import CodeLocation
from spark_app.engine.context import Context
from spark_app.models.gate import Gate
from spark_app.models.inputs import DAY, Examples, Feature, FeatureSet, in_days, parameters
from spark_app.models.periods import Periods
from spark_app.runs.model_card import LABEL
from spark_app.settings import Schedule, Share
from spark_app.spark.persisted import persisted
from spark_app.warehouse.delta_log import last_version
from spark_app.warehouse.tables import Table

Algorithm = Literal["logistic_regression", "random_forest", "gradient_boosted_trees"]
Candidates = dict[Algorithm, dict[str, list[int | float]]]
CANDIDATES: Final[Candidates] = {
    "logistic_regression": {"regParam": [0.001, 0.01], "maxIter": [50]},
    "random_forest": {"numTrees": [30], "maxDepth": [6]},
    "gradient_boosted_trees": {"maxIter": [15], "maxDepth": [4]},
}
"""What is compared where neither a model nor its configuration says it."""


class ModelConfig(BaseModel):
    """What an operator tunes of any model, in `config/ml/`; a file need not be there.

    Attributes:
        label_days: So many days after an example its label is known.
        history_days: Days of examples up to the newest; the first ones only tell what had happened before.
        held_out_days: The last of them with labels, which judge the model; the `label_days` before train nothing.
        slices: Categories by whose values the held-out rows are scored, too.
        flagged_share: The threshold flags this share of the training rows.
        seed: The same seed, rows and configuration give the same model.
        partitions: Of the training rows; with more than two, sums may differ in their last digit from run to run.
        folds: Folds of the cross-validation.
        parallelism: Fits at a time.
        bootstrap: Samples for the confidence intervals.
        candidates: By algorithm the values of each parameter of MLlib to try, in all combinations.
        gate: What promotion needs.
        schedule: When runs are expected.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    OF_THE_JUDGEMENT: ClassVar = frozenset({"slices", "parallelism", "bootstrap", "gate", "schedule"})
    """Keys that do not change what is trained."""

    label_days: int = Field(default=1, ge=1)
    history_days: int = Field(default=7, ge=1)
    held_out_days: int = Field(default=1, ge=1)
    slices: list[str] = Field(default_factory=list)
    flagged_share: Share = 0.05
    seed: int = Field(default=7, ge=0)
    partitions: int = Field(default=2, ge=1)
    folds: int = Field(default=3, ge=2)
    parallelism: int = Field(default=2, ge=1)
    bootstrap: int = Field(default=200, ge=1)
    candidates: Candidates = Field(default=CANDIDATES, min_length=1)
    gate: Gate = Field(default_factory=Gate)
    schedule: Schedule | None = None


@dataclass(frozen=True)
class Model:
    """A model. It stays callable as its function is.

    Attributes:
        name: `ml.refunds`: its module, its configuration, its label in metrics and its versions in the registry.
        inputs: Its features, and the examples that they are of.
        scores: The table that the scores of a day are written to.
        function: Labels examples. Its first parameter gets the examples of days with all their columns, each other one
            the table of its name: of one with days the rows of these days and of the `label_days` after them, which
            it gets, too. It returns the key of each example, and its label: true for the rare class.
        location: Where it is declared.
    """

    name: str
    inputs: FeatureSet
    scores: Table
    function: Callable[..., DataFrame]
    location: CodeLocation

    def __call__(self, *arguments: Any, **named: Any) -> DataFrame:
        """Calls the function."""
        return self.function(*arguments, **named)

    @property
    def examples(self) -> Examples:
        """The rows that it is about."""
        return self.inputs.examples

    @property
    def features(self) -> Sequence[Feature]:
        """What it is told of them."""
        return self.inputs.features

    @property
    def reads(self) -> list[str]:
        """The tables with what it is trained on, that of the examples first."""
        return list(dict.fromkeys([*self.inputs.reads, *parameters(self.function)[1:]]))

    @property
    def categories(self) -> list[str]:
        """The features that are text."""
        return [feature.name for feature in self.features if feature.kind == "category"]

    @property
    def numbers(self) -> list[str]:
        """The features that are numbers."""
        return [feature.name for feature in self.features if feature.kind == "number"]

    def labels(
        self,
        frames: Mapping[str, DataFrame],
        tables: Mapping[str, Table],
        first: datetime.date,
        last: datetime.date,
        *,
        label_days: int,
    ) -> DataFrame:
        """One row per example of days: its key, and 1.0 for the rare class or else 0.0.

        Args:
            frames: The tables that it reads, by their names.
            tables: Their declarations.
            first: The first day.
            last: The last day.
            label_days: So many days after an example its label is known.

        Raises:
            DeclarationError: The function leaves one of the columns out.
        """
        examples = in_days(frames[self.examples.table], self.examples.day, first, last)
        given = {
            name: in_days(frames[name], tables[name].day, first, last + label_days * DAY)
            for name in parameters(self.function)[1:]
        }
        returned = self.function(examples, **given, label_days=label_days)
        found = self.location.require_frame(self.function.__name__, returned)
        self.location.require_returned(self.function.__name__, found.columns, (self.examples.key, LABEL))
        return found.select(self.examples.key, F.coalesce(F.col(LABEL).cast("double"), F.lit(0.0)).alias(LABEL))

    def periods(self, config: ModelConfig, last: datetime.date) -> Periods:
        """The days of a history that train and judge."""
        return Periods.of(
            last,
            history_days=config.history_days,
            window_days=self.inputs.window_days,
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
    frames = {name: context.table(name, version=found[name]) for name in model.reads}
    days = (periods.first if has_train else periods.held_out_first, periods.held_out_last)
    tables, key, day = context.warehouse.tables, model.examples.key, F.to_date(model.examples.at)
    labels = model.labels(frames, tables, *days, label_days=config.label_days)
    rows = model.inputs.of_days(frames, tables, *days).join(labels, key)
    with persisted(estimators.in_order(rows, key, partitions=config.partitions)) as ordered:
        train = ordered.where(day.between(periods.first, periods.train_last))
        held_out = ordered.where(day.between(periods.held_out_first, periods.held_out_last))
        yield Data(train, held_out, periods, found)
