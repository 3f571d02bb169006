"""Two causes at once, in one application; the twin has neither."""

import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from truth.programs.common import digest, done, hashed, main, place, session


def udf_and_skew(*, planted: bool, form: str, checks: int = 20_000_000, sales: int = 2_000_000) -> None:
    """Checks by a Python function for each row; then digests by shop, of which one has most sales."""
    off = {"sql_adaptive_coalescePartitions_enabled": "false", "sql_execution_pythonUDF_arrow_enabled": "false"}
    spark = session("shops", sql_shuffle_partitions="16", **off)
    spark.range(0, checks, 1, 4).createOrReplaceTempView("numbers")
    spark.udf.register("checked", lambda number: (number * 31 + 7) % 65537, "long")
    checked = "checked(id)" if planted else "(id * 31 + 7) % 65537"
    shop = "CASE WHEN id % 100 < 95 THEN 0 ELSE id % 64 END" if planted else "id % 64"
    with place(spark):
        if form == "sql":
            done(spark.sql(f"SELECT id, {checked} AS checked FROM numbers"))
        else:
            done(spark.table("numbers").select("id", F.expr(checked)))
    of_shops = spark.range(0, sales, 1, 4).select("id", F.expr(shop).alias("shop"))
    done(of_shops.repartition(16, "shop").select("shop", digest("id")))
    spark.stop()


def wait_and_partitions(*, planted: bool, rows: int = 48_000, partitions: int = 400) -> None:
    """What a service says of each row, which takes two milliseconds; then a sum in hundreds of partitions."""
    spark = session("answers")

    def answer(number: int) -> int:
        if planted:
            time.sleep(0.002)
        return hashed(number, 20)

    with place(spark):
        spark.sparkContext.range(0, rows, 1, 8).map(answer).sum()
    spark.sparkContext.range(0, 400_000, 1, partitions if planted else 4).sum()
    spark.stop()


def gap_and_scan(*, planted: bool, seconds: float = 45, lines: int = 800_000, times: int = 12) -> None:
    """A model that the driver computes; then figures of the same JSON files, which are read for each, or kept."""
    folder = Path("sales")
    folder.mkdir(exist_ok=True)
    for number in range(4):
        rows = (f'{{"id":{row},"shop":{row % 64},"note":"a note {row}"}}' for row in range(lines // 4))
        (folder / f"{number}.json").write_text("\n".join(rows), encoding="utf-8")
    spark = session("figures")
    with place(spark):
        _modelled(spark, seconds if planted else 0)
    sales = spark.read.schema("id long, shop int, note string").json(str(folder))
    if not planted:
        sales.cache()
    for number in range(times):
        sales.where(F.col("shop") % times == number).agg(F.max("note")).collect()
    spark.stop()


def _modelled(spark: SparkSession, seconds: float) -> None:
    numbers: Any = spark.range(0, 200_000, 1, 4).select(digest("id", 5).alias("text"))
    numbers.agg(F.max("text")).collect()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        hashed(7, 1000)
    numbers.agg(F.min("text")).collect()


if __name__ == "__main__":
    main(udf_and_skew, wait_and_partitions, gap_and_scan)
