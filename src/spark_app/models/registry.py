"""The versions of models in Delta: what was trained, how good it is, and which one is in production.

The order of writes makes a kill harmless: the artifact first, its row in `models` next, and the row in
`model_promotions`, which alone decides what is in production, last. A row is added only where none of its number is
(`Context.insert`): two trainings at once take two numbers, and so do two promotions, on any file system.

Readers need `production` and `load` only::

    version = registry.production(warehouse, "ml.refunds")
    model = registry.load(version)          # a `pyspark.ml.PipelineModel`
    scored = model.transform(features)
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.errors import InputError
from spark_app.runs import model_card
from spark_app.runs.model_card import ModelCard
from spark_app.warehouse.schemas import MODEL_EVALUATIONS, MODEL_PROMOTIONS, MODELS
from spark_app.warehouse.tables import Table, Warehouse

if TYPE_CHECKING:
    from pyspark.ml import PipelineModel

Action = Literal["promoted", "rolled_back"]

VERSIONS: Final = Table("models", MODELS)
EVALUATIONS: Final = Table("model_evaluations", MODEL_EVALUATIONS)
PROMOTIONS: Final = Table("model_promotions", MODEL_PROMOTIONS)
TABLES: Final = (VERSIONS, EVALUATIONS, PROMOTIONS)
VERSION_KEYS: Final = ("model", "version")
PROMOTION_KEYS: Final = ("model", "promotion")
ARTIFACTS: Final = "_models"
"""The folder of the warehouse with the fitted pipelines; a name that is no table's."""


@dataclass(frozen=True)
class Version:
    """A version of a model.

    Attributes:
        model: `ml.refunds`.
        number: Its number, from 1.
        fingerprint: What determines the model: the same gives the same one.
        artifact: The folder of the fitted pipeline.
        card: How it was trained.
    """

    model: str
    number: int
    fingerprint: str
    artifact: str
    card: ModelCard


@dataclass(frozen=True)
class Promotion:
    """A change of what is in production."""

    number: int
    version: int
    action: Action


def artifact_folder(warehouse: Warehouse, model: str, run_id: str) -> str:
    """Where a run writes a fitted pipeline: no two runs share a folder."""
    return f"{warehouse.root}/{ARTIFACTS}/{model}/{run_id}"


def versions(warehouse: Warehouse, model: str) -> list[Version]:
    """Every version of a model, oldest first."""
    rows = warehouse.table(VERSIONS.name).where(F.col("model") == model).orderBy("version").collect()
    return [
        Version(
            model,
            row.version,
            row.fingerprint,
            f"{warehouse.root}/{_in_warehouse(row.artifact)}",
            model_card.decode(row.card, ModelCard),
        )
        for row in rows
    ]


def _in_warehouse(artifact: str) -> str:
    """The folder of an artifact as the table has it: relative, so that a warehouse that moved takes its models along.

    Rows of before have the whole path, of where the warehouse was then.
    """
    return f"{ARTIFACTS}/{artifact.rpartition(f'{ARTIFACTS}/')[2]}"


def version(warehouse: Warehouse, model: str, number: int | None = None) -> Version:
    """A version of a model by its number; the newest without one.

    Raises:
        InputError: There is none.
    """
    known = versions(warehouse, model)
    found = [each for each in known if number is None or each.number == number]
    if not found:
        which = "" if number is None else f" {number}"
        numbers = f"; there are {', '.join(str(each.number) for each in known)}" if known else ""
        raise InputError(f"{model} has no version{which}{numbers}: train one with `spark-app ml train`")
    return found[-1]


def production(warehouse: Warehouse, model: str) -> Version | None:
    """The version of a model that is in production; None without any."""
    changes = promotions(warehouse, model)
    return version(warehouse, model, changes[-1].version) if changes else None


def promotions(warehouse: Warehouse, model: str) -> list[Promotion]:
    """Every change of what is in production, oldest first."""
    rows = warehouse.table(PROMOTIONS.name).where(F.col("model") == model).orderBy("promotion").collect()
    return [Promotion(row.promotion, row.version, row.action) for row in rows]


def previous(changes: Sequence[Promotion]) -> int | None:
    """The version that was in production before the last promotion; None where there was none."""
    last = max((position for position, change in enumerate(changes) if change.action == "promoted"), default=0)
    return changes[last - 1].version if last else None


def withdrawn(changes: Sequence[Promotion]) -> set[int]:
    """The versions that were rolled back and not promoted again since."""
    found = set[int]()
    for before, change in pairwise(changes):
        if change.action == "rolled_back":
            found.add(before.version)
        found.discard(change.version)
    return found


def evaluation(warehouse: Warehouse, model: str, number: int) -> ModelCard | None:
    """The card of a version with its last evaluation; None before it was evaluated."""
    is_it = (F.col("model") == model) & (F.col("version") == number)
    row = warehouse.table(EVALUATIONS.name).where(is_it).orderBy(F.col("evaluated_at").desc()).head()
    return model_card.decode(row.evaluation, ModelCard) if row else None


def load(found: Version) -> "PipelineModel":
    """The fitted pipeline of a version.

    Raises:
        InputError: Its folder is gone.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException
    from pyspark.ml import PipelineModel

    try:
        return PipelineModel.load(found.artifact)
    except (AnalysisException, Py4JJavaError) as error:
        raise InputError(f"cannot load version {found.number} of {found.model} from {found.artifact}") from error


def version_row(spark: SparkSession, found: Version, *, run_id: str, features: DataFrame) -> DataFrame:
    """The row of a version, to be written after its artifact."""
    card = found.card
    kinds = {field.name: field.dataType.simpleString() for field in features.schema if field.name in card.features}
    scores = {"cross_validation": card.tried[0].score, "cross_validation_deviation": card.tried[0].deviation}
    trained_at = datetime.datetime.fromisoformat(card.trained_at)
    values = [
        found.model, found.number, trained_at, found.fingerprint, _in_warehouse(found.artifact), card.algorithm,
        card.parameters, scores, kinds, card.table_versions, card.git_commit, run_id, card.trace_id,
        model_card.encode(card),
    ]  # fmt: skip
    return spark.createDataFrame([tuple(values)], MODELS)


def evaluation_row(spark: SparkSession, card: ModelCard, *, run_id: str) -> DataFrame:
    """The row of the evaluation of a version, which its card has."""
    found = card.evaluation.scores if card.evaluation else {}
    scores = {name: each.value for name, each in found.items() if each.value is not None}
    values = (card.model, card.version, _now(), run_id, scores, model_card.encode(card))
    return spark.createDataFrame([values], MODEL_EVALUATIONS)


def promotion_row(spark: SparkSession, model: str, change: Promotion, *, run_id: str) -> DataFrame:
    """The row of a change of what is in production."""
    values = (model, change.number, change.version, change.action, _now(), run_id)
    return spark.createDataFrame([values], MODEL_PROMOTIONS)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def where_version(model: str, number: int) -> str:
    """The condition that selects the row of a version in `model_evaluations`."""
    return f"model = '{model}' and version = {number}"
