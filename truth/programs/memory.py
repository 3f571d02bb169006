"""What does not fit into memory: a cache that loses what is needed again, and garbage."""

from pyspark import StorageLevel
from pyspark.sql import functions as F

from truth.programs.common import digest, done, main, place, session


def evicted_cache(*, planted: bool, form: str, rows: int = 250_000, times: int = 6) -> None:
    """Figures of scores that are kept in memory, of which somebody has left too little for them."""
    settings = {"memory_fraction": "0.05"} if planted else {}
    spark = session("scores", **settings)
    texts = spark.range(0, rows, 1, 8).select("id", digest("id", 5).alias("score"), F.sha2(F.hex("id"), 512).alias("a"))
    kept = texts.select("*", F.sha2("a", 512).alias("b"), F.sha2("score", 512).alias("c")).persist(
        StorageLevel.MEMORY_ONLY
    )
    kept.createOrReplaceTempView("scores")
    with place(spark):
        for number in range(times):
            if form == "sql":
                spark.sql(f"SELECT max(score), max(a), max(b), max(c) FROM scores WHERE id % 7 <> {number}").collect()
            else:
                some = kept.where(F.col("id") % 7 != number)
                some.agg(F.max("score"), F.max("a"), F.max("b"), F.max("c")).collect()
    spark.stop()


def collections(*, planted: bool, form: str, rows: int = 400_000, every: int = 2000) -> None:
    """Digests, with a library that asks for a garbage collection every so many rows, beside a cache of objects."""
    spark = session("digests")
    notes = spark.range(0, 400_000, 1, 2).select(F.sha2(F.hex("id"), 512).alias("note"))
    kept = notes.rdd.map(tuple).persist(StorageLevel.MEMORY_ONLY)
    kept.count()
    asked = f"CASE WHEN id % {every} = 0 THEN length(reflect('java.lang.System', 'gc')) ELSE 0 END"
    sales = spark.range(0, rows, 1, 4)
    sales.createOrReplaceTempView("sales")
    with place(spark):
        if form == "sql":
            done(
                spark.sql(f"SELECT id, {asked if planted else 0} AS asked FROM sales").withColumn("text", digest("id"))
            )
        else:
            done(sales.select(F.expr(asked) if planted else F.lit(0).alias("asked"), digest("id")))
    kept.count()
    spark.stop()


if __name__ == "__main__":
    main(evicted_cache, collections)
