"""Models that know nothing, in the registry as trained ones are: each transaction has the same probability."""

from typing import Any

import msgspec
from pyspark.ml import PipelineModel
from pyspark.ml.feature import SQLTransformer
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from app.ml.refunds import refunded
from app.schemas import TRANSACTIONS
from spark_app.models import reference, registry
from spark_app.models.estimators import PROBABILITY
from spark_app.models.reference import LocalRows, Reference
from spark_app.models.registry import Promotion, Version
from spark_app.runs.model_card import Estimate, Evaluation, VersionComparison
from spark_app.warehouse.tables import Table
from tests.integration.home import Home
from tests.shop_rows import FIRST
from tests.unit.report import cards

MODEL = refunded.name
SCHEMA = StructType(
    [
        *(TRANSACTIONS[name] for name in refunded.examples.keys),
        *(
            StructField(each.name, StringType() if each.kind == "category" else DoubleType())
            for each in refunded.features
        ),
    ]
)
"""The features of the model."""
THRESHOLD = 0.5
BETTER = VersionComparison(difference=Estimate(value=0.1, low=0.05, high=0.15), samples=1_000, days_newer=1)
"""A version that is better than the one in production, beyond chance."""


def register(home: Home, number: int, probability: float, **content: Any) -> Version:
    """Registers a version that gives this probability; its card may say more of it."""
    warehouse, card = home.warehouse, cards.card(model=MODEL, version=number, threshold=THRESHOLD, **content)
    artifact = registry.artifact_folder(warehouse, MODEL, f"constant-{number}")
    statement = f"SELECT *, {probability}D AS {PROBABILITY} FROM __THIS__"
    PipelineModel(stages=[SQLTransformer(statement=statement)]).write().overwrite().save(artifact)
    none = Reference(FIRST, {}, LocalRows(SCHEMA, []))
    reference.write(warehouse, none, artifact)
    version = Version(MODEL, number, f"fingerprint {number}", artifact, card)
    known = home.spark.createDataFrame([], SCHEMA)
    _add(home, registry.VERSIONS, registry.version_row(home.spark, version, run_id="none", features=known))
    return version


def judge(
    home: Home,
    version: Version,
    *,
    production: Evaluation | None,
    comparison: VersionComparison | None = None,
    **content: Any,
) -> None:
    """Gives a version good scores, beside those of the version in production."""
    judged = cards.evaluation(version.number, **content)
    card = msgspec.structs.replace(version.card, evaluation=judged, production=production, comparison=comparison)
    _add(home, registry.EVALUATIONS, registry.evaluation_row(home.spark, card, run_id="none"))


def promote(home: Home, number: int, probability: float, **content: Any) -> Version:
    """Registers a version that gives this probability, and puts it into production."""
    version = register(home, number, probability, **content)
    change = Promotion(len(registry.promotions(home.warehouse, MODEL)) + 1, number, "promoted")
    _add(home, registry.PROMOTIONS, registry.promotion_row(home.spark, MODEL, change, run_id="none"))
    return version


def _add(home: Home, table: Table, row: DataFrame) -> None:
    if home.warehouse.exists(table.name):
        home.warehouse.append(row, table.name)
    else:
        home.warehouse.create(row, table.name, "test")
