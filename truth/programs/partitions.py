"""How work is divided into tasks: by a hot key, into too many, into too few."""

import gzip
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from truth.programs.common import digest, done, hashed, main, place, scaled, session


def skewed_key(*, planted: bool, form: str, share: float = 0.95, rows: int = 2_400_000) -> None:
    """Digests of sales by shop; one shop has most of them."""
    spark = session("shops", sql_shuffle_partitions="16", sql_adaptive_coalescePartitions_enabled="false")
    hot = int(share * 100)
    if form == "rdd":
        with place(spark):
            _skewed_rdd(spark, hot if planted else 0, rows)
    else:
        spread = F.col("id") % 64
        shop = F.when(F.col("id") % 100 < hot, 0).otherwise(spread) if planted else spread
        sales = spark.range(0, rows, 1, 4).withColumn("shop", shop.cast("int"))
        with place(spark):
            done(_by_shop(spark, sales, form))
    spark.stop()


def _by_shop(spark: SparkSession, sales: DataFrame, form: str) -> DataFrame:
    if form == "sql":
        sales.createOrReplaceTempView("sales")
        again = "sha2(repeat({}, 4), 512)"
        text = again.format(again.format(again.format(again.format("string(id)"))))
        return spark.sql(f"SELECT shop, {text} AS text FROM (SELECT /*+ REPARTITION(16, shop) */ * FROM sales)")
    if form == "pandas":
        return sales.groupBy("shop").applyInPandas(_scored, "shop int, score long")
    return sales.repartition(16, "shop").select("shop", digest("id"))


def _scored(batch: Any) -> Any:
    return batch.assign(score=batch["id"].map(hashed))[["shop", "score"]]


def _skewed_rdd(spark: SparkSession, hot: int, rows: int) -> None:
    sales = spark.sparkContext.range(0, rows, 1, 4).map(lambda sale: (0 if sale % 100 < hot else sale % 64, sale))
    grouped = sales.partitionBy(16).mapValues(hashed)
    grouped.map(lambda pair: pair[1]).sum()


def too_many(*, planted: bool, form: str, partitions: int = 2000, rows: int = 400_000) -> None:
    """Totals by shop, in thousands of partitions or in four."""
    number = partitions if planted else 4
    spark = session("totals", sql_shuffle_partitions=str(number), sql_adaptive_enabled="false")
    sales = spark.range(0, rows, 1, 4).withColumn("shop", F.col("id") % 50_000)
    sales.createOrReplaceTempView("sales")
    with place(spark):
        if form == "rdd":
            spark.sparkContext.range(0, 1000, 1, number).count()
        elif form == "sql":
            for column in ("shop", "shop % 1000", "shop % 77"):
                done(spark.sql(f"SELECT {column} AS key, sum(id) FROM sales GROUP BY 1"))
        else:
            for _ in range(3):
                done(sales.groupBy("shop").agg(F.sum("id")))
    spark.stop()


def too_few(*, planted: bool, form: str, rows: int = 1_500_000) -> None:
    """Digests by one task, or by two at a time."""
    number = 1 if planted else 4
    shuffled = {"sql_shuffle_partitions": str(number), "sql_adaptive_coalescePartitions_enabled": "false"}
    spark = session("digests", **shuffled)
    with place(spark):
        if form == "rdd":
            spark.sparkContext.range(0, rows * 2, 1, number).map(hashed).sum()
        elif form == "sql":
            spark.range(0, rows, 1, 4).createOrReplaceTempView("sales")
            # Without `PARTITION BY` all rows are in one window, of one task.
            over = "ORDER BY id" if planted else "PARTITION BY id % 64 ORDER BY id"
            ranked = spark.sql(f"SELECT id, row_number() OVER ({over}) AS rank FROM sales")
            done(ranked.select("rank", digest("id")))
        elif form == "pandas":
            sales = spark.range(0, rows * 2, 1, 4).withColumn("shop", (F.col("id") % 64).cast("int"))
            done(sales.groupBy("shop").applyInPandas(_scored, "shop int, score long"))
        else:
            sales = spark.range(0, rows, 1, 4)
            texts = (sales.coalesce(1) if planted else sales).select(digest("id").alias("text"))
            if form == "ml":
                scaled(texts.select(F.hash("text").alias("number")))
            else:
                done(texts)
    spark.stop()


def unsplittable(*, planted: bool, rows: int = 1_500_000) -> None:
    """Digests of the lines of a file: packed by gzip in one piece, or plain."""
    text = "\n".join(str(number) for number in range(rows))
    file = Path("lines.txt.gz" if planted else "lines.txt")
    file.write_bytes(gzip.compress(text.encode()) if planted else text.encode())
    spark = session("lines", sql_files_maxPartitionBytes="500k", sql_files_openCostInBytes="0")
    with place(spark):
        done(spark.read.text(str(file)).select(digest("value", 5)))
    spark.stop()


def spill(*, planted: bool, form: str, fraction: float = 0.05, rows: int = 1_700_000, times: int = 3) -> None:
    """Sorts of long rows, for which somebody has left no memory."""
    settings = {"memory_fraction": str(fraction)} if planted else {}
    spark = session("rank", sql_shuffle_partitions="4", sql_adaptive_enabled="false", **settings)
    text = F.concat(*[F.sha2(F.concat("id", F.lit(each)), 512) for each in range(6)])
    sales = spark.range(0, rows, 1, 4).select("id", text.alias("text"))
    sales.createOrReplaceTempView("sales")
    with place(spark):
        for number in range(times):
            if form == "sql":
                over = f"PARTITION BY id % {number + 7} ORDER BY text"
                done(spark.sql(f"SELECT text, row_number() OVER ({over}) AS rank FROM sales"))
            else:
                done(sales.repartition(4, F.col("id") % (number + 7)).sortWithinPartitions("text"))
    spark.stop()


def overwritten(*, planted: bool, days: int = 4, rows: int = 100_000) -> None:
    """Sales of some days, a write for each; each removes the others, or replaces its own day."""
    spark = session("days", sql_sources_partitionOverwriteMode="static" if planted else "dynamic")
    with place(spark):
        for day in range(days):
            sales = spark.range(0, rows, 1, 2).select("id", F.lit(f"2026-01-{day + 1:02}").alias("day"))
            sales.write.mode("overwrite").partitionBy("day").parquet("sales")
    spark.stop()


if __name__ == "__main__":
    main(skewed_key, too_many, too_few, unsplittable, spill, overwritten)
