"""Impressions of ads with the clicks on them.

Reads: the topics impressions and clicks.
Writes: attributions.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from app.schemas import ATTRIBUTIONS
from app.topics import CLICKS, IMPRESSIONS
from spark_app.pipeline import stream
from spark_app.pipeline.stream import StreamContext
from spark_app.warehouse.tables import Table

TOPICS: Final = (IMPRESSIONS.name, CLICKS.name)
READS: Final = ()
WRITES: Final = (Table("attributions", ATTRIBUTIONS),)


class Config(stream.StreamConfig):
    """What an operator tunes: see `config/streaming/attribution.yml`."""

    watermark: stream.Interval
    click_within: stream.Interval


def attributions(impressions: DataFrame, clicks: DataFrame, config: Config) -> DataFrame:
    """One row per impression and click on it in time; one without click for an impression that has none.

    Left out are clicks without an impression, and clicks that come too long after it.

    Columns in: impressions: those of `IMPRESSION`; clicks: those of `CLICK`.
    Columns out: those of `ATTRIBUTIONS`.
    """
    shown = impressions.withColumnRenamed("timestamp", "shown_at")
    clicked = clicks.withColumnsRenamed({"timestamp": "clicked_at", "impression_id": "clicked_id"})
    latest = F.col("shown_at") + F.expr(f"interval {config.click_within}")
    is_click = (
        (F.col("impression_id") == F.col("clicked_id"))
        & (F.col("clicked_at") >= F.col("shown_at"))
        & (F.col("clicked_at") <= latest)
    )
    return shown.join(clicked, is_click, "left").select(*ATTRIBUTIONS.names)


def query(context: StreamContext, config: Config) -> DataStreamWriter:
    """Appends clicks as they come, and unclicked impressions when the watermark allows no more clicks on them.

    The watermark is that of the topic that is further behind: while one has no records, unclicked impressions wait.
    """
    impressions = context.read_once(IMPRESSIONS, config, watermark=config.watermark)
    clicks = context.read_once(CLICKS, config, watermark=config.watermark, counted_as="rows of clicks")
    return context.append(attributions(impressions, clicks, config), "attributions", config)
