"""Will this transaction be refunded? What a model of that is trained on; `spark_app.pipeline.lifecycle` does the rest.

Reads: transactions, refund_events.
Writes: refund_scores, and through the model registry models, model_evaluations and model_promotions.
"""

import datetime
from typing import TYPE_CHECKING, Final, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from app import features
from app.schemas import REFUND_SCORES
from spark_app.pipeline import lifecycle
from spark_app.pipeline.model import Model, ModelConfig
from spark_app.runs.model_card import LABEL
from spark_app.warehouse.tables import Table

if TYPE_CHECKING:
    from spark_app.pipeline.training import TrainingContext

READS: Final = ("transactions", "refund_events")
WRITES: Final = (Table("refund_scores", REFUND_SCORES, ("processed_date",)),)
Slice = Literal["category", "payment_method", "channel", "country", "customer_segment"]


class Config(ModelConfig):
    """What an operator tunes: see `config/ml/refunds.yml`."""

    slices: list[Slice]  # type: ignore[assignment]  # some of the texts that any model has


def inputs(
    transactions: DataFrame, refund_events: DataFrame, *, first: datetime.date, last: datetime.date
) -> DataFrame:
    """One row per transaction of days: what is known of it at its instant, whatever its status became.

    Only the days and the window before them are read.

    Columns in: those of `TRANSACTIONS`; refund_events: those of `REFUND_EVENTS`.
    Columns out: those of `features.SCHEMA`.
    """
    bought, refunds = features.in_window(transactions, refund_events, first, last)
    asked = bought.where(F.col("processed_date") >= first)
    return features.features(asked, features.customer_events(bought, refunds))


def labels(
    transactions: DataFrame, refund_events: DataFrame, *, first: datetime.date, last: datetime.date, label_days: int
) -> DataFrame:
    """One row per transaction of days: 1 if its refund is known within `label_days`, else 0.

    A refund is known from its event, or from the status of the transaction at the instant of its last change.

    Columns in: those of `TRANSACTIONS`; refund_events: those of `REFUND_EVENTS`.
    Columns out: transaction_id, label.
    """
    refunds = refund_events.where(F.col("refunded_date") >= first)
    asked = transactions.where(F.col("processed_date").between(first, last))
    earliest = refunds.groupBy("transaction_id").agg(F.min("refunded_at").alias("refunded_at"))
    by_status = F.when(F.col("status") == "refunded", F.col("updated_at"))
    known_at = F.least("refunded_at", by_status)  # of those that are not null
    is_in_time = known_at <= F.col("created_at") + F.make_dt_interval(days=F.lit(label_days))
    label = F.coalesce(is_in_time.cast("double"), F.lit(0.0)).alias(LABEL)
    return asked.join(earliest, "transaction_id", "left").select("transaction_id", label)


MODEL: Final = Model(
    name="ml.refunds",
    examples=features.EXAMPLES,
    reads=READS,
    scores=WRITES[0],
    features=features.FEATURES,
    window_days=features.WINDOW_DAYS,
    inputs=inputs,
    labels=labels,
)


def run(context: "TrainingContext", config: Config) -> None:
    """Trains as of the end of the day of the context, judges the new version, and promotes it if it passes the gate.

    Raises:
        PromotionError: The gate refuses it; what is in production stays.
    """
    lifecycle.run(context, MODEL, config)
