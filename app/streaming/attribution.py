"""Impressions of ads with the clicks on them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from app.schemas import ATTRIBUTIONS
from spark_app import stream


@stream.table(schema=ATTRIBUTIONS)
def attributions(
    impressions: DataFrame, clicks: DataFrame, *, click_within: stream.Interval = "10 minutes"
) -> DataFrame:
    """One row per impression and click on it in time; one without click for an impression that has none.

    Left out are clicks without an impression, and clicks that come too long after it. Clicks are appended as they come,
    and unclicked impressions when the watermark allows no more clicks on them. The watermark is that of the topic that
    is further behind: while one has no records, unclicked impressions wait.

    Columns in: impressions: those of `IMPRESSION`; clicks: those of `CLICK`.
    Columns out: those of `ATTRIBUTIONS`.
    """
    shown = impressions.withColumnRenamed("timestamp", "shown_at")
    clicked = clicks.withColumnsRenamed({"timestamp": "clicked_at", "impression_id": "clicked_id"})
    latest = F.col("shown_at") + F.expr(f"interval {click_within}")
    is_click = (
        (F.col("impression_id") == F.col("clicked_id"))
        & (F.col("clicked_at") >= F.col("shown_at"))
        & (F.col("clicked_at") <= latest)
    )
    return shown.join(clicked, is_click, "left").select(*ATTRIBUTIONS.names)
