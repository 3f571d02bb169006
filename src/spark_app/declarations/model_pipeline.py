"""The pipeline that the labels of a module make: a model that is trained, judged, promoted and applied."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeVar

from pydantic import Field, create_model, field_validator
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

from spark_app.declarations.declaration import require_names
from spark_app.declarations.pipeline import Pipeline
from spark_app.declarations.trials import NO_DAY, EmptyInputs, Trial
from spark_app.engine import training_phases
from spark_app.engine.code_location import CodeLocation, nearest
from spark_app.engine.model import CANDIDATES, Candidates, Model, ModelConfig
from spark_app.models.inputs import Feature, FeatureSet, parameters

if TYPE_CHECKING:
    from spark_app.engine.training import TrainingContext

LABEL_DAYS = "label_days"
MIN_DAYS = 3
"""Of a history, where nothing says how long it is: two that train and one that judges, apart from the window before and
the `label_days` after each of these."""


@dataclass(frozen=True)
class DeclaredFeature(Feature):
    """A feature, and where it is declared."""

    location: CodeLocation = field(kw_only=True)


@dataclass(frozen=True)
class DeclaredFeatures(FeatureSet):
    """Features, and where they are declared.

    Attributes:
        location: The function.
        added: The columns that it adds to the examples.
        keys: The columns that each row of features has beside them.
        day: The column with the day of an example.
    """

    location: CodeLocation
    added: Sequence[str]
    keys: Sequence[StructField]
    day: StructField

    def with_history(self, examples: DataFrame, given: Mapping[str, DataFrame]) -> DataFrame:
        """The examples, with what the function adds to them.

        Raises:
            DeclarationError: It leaves a column out.
        """
        found = self.location.require_frame(self.function.__name__, super().with_history(examples, given))
        needed, why = (*examples.columns, *self.added), ", which its rows have or it adds"
        self.location.require_returned(self.function.__name__, found.columns, needed, why)
        return found


@dataclass(frozen=True)
class DeclaredModel(Model):
    """A model, and what it compares where the configuration does not say it."""

    inputs: DeclaredFeatures
    candidates: Candidates | None = None


DeclaredType = TypeVar("DeclaredType", bound=DeclaredFeatures | DeclaredModel)


def checked(new: DeclaredType) -> DeclaredType:
    """A declaration whose names are checked.

    Raises:
        DeclarationError: Its function lacks a parameter that it needs, or has one that is no table; a feature is
            declared twice, or reads a column that is not there.
    """
    name, examples = new.function.__name__, new.examples
    require_names(new.function, new.location)
    if not parameters(new.function):
        raise new.location.error(f"{name} needs a first parameter, which gets the rows of {examples.table}")
    by_name = {each.name for each in inspect.signature(new.function).parameters.values()} - {*parameters(new.function)}
    wanted = {LABEL_DAYS} if isinstance(new, DeclaredModel) else set[str]()
    if wanted - by_name:
        raise new.location.error(
            f"{name} needs the parameter {LABEL_DAYS}: `def {name}(rows, ..., *, {LABEL_DAYS}: int)`"
        )
    default = inspect.signature(new.function).parameters[LABEL_DAYS].default if wanted else 1
    if default is not inspect.Parameter.empty and not (isinstance(default, int) and default > 0):
        raise new.location.error(f"{name}: {LABEL_DAYS} cannot be {default!r}: it is a number of days, from 1")
    for each in by_name - wanted:
        raise new.location.error(f"{name}: nothing gives it {each}: a table that it reads comes before the `*`")
    if isinstance(new, DeclaredFeatures):
        _require_columns(new)
    return new


def _require_columns(new: DeclaredFeatures) -> None:
    known = [*new.examples.known, *new.added]
    locations = dict[str, CodeLocation]()
    for feature in new.features:
        location = getattr(feature, "location", new.location)
        if feature.name in new.examples.keys:
            raise location.error(f"{feature.name} identifies a row of {new.examples.table}: it is no feature")
        if feature.name in locations:
            raise location.error(
                f"the feature {feature.name} is declared twice, here and in line {locations[feature.name].line}"
            )
        locations[feature.name] = location
        for column in feature.reads:
            if column not in known:
                raise location.error(
                    f"the feature {feature.name} reads {column}, which is not known of {new.examples.table} and which "
                    f"{new.function.__name__} does not add: {nearest(column, known)}"
                )


class DeclaredConfig(ModelConfig):
    """What an operator tunes of a declared model."""

    categories: ClassVar[Sequence[str]] = ()

    @field_validator("slices")
    @classmethod
    def _are_categories(cls, slices: list[str]) -> list[str]:
        for name in slices:
            if name not in cls.categories:
                raise ValueError(f"{name} is no category among the features: {nearest(name, cls.categories)}")
        return slices


class ModelPipeline(Pipeline):
    """A pipeline that trains a model, judges it, and promotes it if it passes the gate."""

    kind = "model"

    def __init__(self, name: str, declared: DeclaredModel) -> None:
        """The pipeline of a module.

        Args:
            name: Its name.
            declared: What the module declares.
        """
        default = inspect.signature(declared.function).parameters[LABEL_DAYS].default
        label_days = 1 if default is inspect.Parameter.empty else default
        days = declared.inputs.window_days + MIN_DAYS + 2 * label_days
        config = create_model(
            "Config",
            __base__=DeclaredConfig,
            label_days=(int, Field(default=label_days, ge=1)),
            history_days=(int, Field(default=days, ge=1)),
            candidates=(Candidates, Field(default=declared.candidates or CANDIDATES, min_length=1)),
        )
        config.categories = declared.categories
        super().__init__(
            name=name,
            location=declared.location,
            config=config,
            reads=tuple(declared.reads),
            writes=(declared.scores,),
            trains=declared,
            functions=[
                (each.function.__name__, each.location, parameters(each.function)[1:])
                for each in (declared.inputs, declared)
            ],
        )
        self._declared = declared

    def trials(self, empty: EmptyInputs) -> Iterator[Trial]:
        """Its functions, to be called with frames without rows."""
        model, inputs = self._declared, self._declared.inputs
        frames = {name: empty.table(name) for name in model.reads}
        days = (NO_DAY, NO_DAY)

        def labels() -> DataFrame:
            return model.labels(frames, empty.tables, *days, label_days=1)

        yield Trial(inputs.function.__name__, inputs.location, lambda: inputs.of_days(frames, empty.tables, *days))
        yield Trial(model.function.__name__, model.location, labels)

    def run(self, context: "TrainingContext", config: ModelConfig) -> None:
        """Trains as of the end of the day of the context, judges the new version, and promotes it if it passes.

        Raises:
            PromotionError: The gate refuses it; what is in production stays.
        """
        training_phases.run(context, self._declared, config)
