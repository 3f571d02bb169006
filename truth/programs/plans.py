"""What a query does: how it joins, what it multiplies, what it reads or computes again."""

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from truth.programs.common import digest, done, hashed, main, place, scaled, session


def skewed_join(*, planted: bool, form: str, share: float = 0.95, rows: int = 500_000) -> None:
    """Sales with their shops, by a shuffle, without adaptive execution; one shop has most sales."""
    spark = session(
        "shops", sql_shuffle_partitions="16", sql_adaptive_enabled="false", sql_autoBroadcastJoinThreshold="-1"
    )
    hot = int(share * 100)
    shop = F.when(F.col("id") % 100 < hot, 0).otherwise(F.col("id") % 3000) if planted else F.col("id") % 3000
    # Neither side is small enough for a broadcast.
    sales = spark.range(0, rows, 1, 4).select("id", shop.alias("shop"), F.sha2(F.hex("id"), 256).alias("text"))
    notes = F.concat(*[F.sha2(F.concat("id", F.lit(each)), 512) for each in range(60)])
    shops = spark.range(0, 3000, 1, 4).select(F.col("id").alias("shop"), notes.alias("note"))
    sales.createOrReplaceTempView("sales")
    shops.createOrReplaceTempView("shops")
    with place(spark):
        if form == "sql":
            joined = spark.sql("SELECT id, text, length(note) AS length FROM sales JOIN shops USING (shop)")
        else:
            joined = sales.join(shops, "shop").select("id", "text", F.length("note").alias("length"))
        done(joined.select("length", "text", digest("id")))
    spark.stop()


def cartesian(*, planted: bool, form: str, events: int = 200_000) -> None:
    """Events within intervals: each is compared with each, or with those of its hour."""
    spark = session("intervals")
    times = spark.range(0, events, 1, 4).select((F.col("id") * 60).alias("at"))
    spans = spark.range(0, 40_000).select((F.col("id") * 90).alias("start"), (F.col("id") * 90 + 45).alias("end"))
    times.createOrReplaceTempView("events")
    spans.createOrReplaceTempView("intervals")
    hour = "floor(at / 3600) = floor(start / 3600)"
    with place(spark):
        if form == "sql":
            equal = "" if planted else f"AND {hour}"
            done(spark.sql(f"SELECT * FROM events JOIN intervals ON at >= start AND at < end {equal}"))
        else:
            within = (F.col("at") >= F.col("start")) & (F.col("at") < F.col("end"))
            done(times.join(spans, within if planted else within & F.expr(hour)))
    spark.stop()


def broadcast_missing(*, planted: bool, form: str, rows: int = 4_000_000) -> None:
    """Joins with small tables, where somebody has switched broadcasts off."""
    settings = {"sql_autoBroadcastJoinThreshold": "-1"} if planted else {}
    spark = session("names", sql_shuffle_partitions="8", **settings)
    sales = spark.range(0, rows, 1, 4).withColumn("note", F.repeat(F.hex(F.xxhash64("id")), 12))
    for name in ("shop", "product"):
        sales = sales.withColumn(name, F.hash("note", F.lit(name)) % 500 + 500)
        small = spark.range(1000).select(F.col("id").alias(name), F.hex("id").alias(f"{name}_name"))
        small.createOrReplaceTempView(f"{name}s")
    sales.createOrReplaceTempView("sales")
    with place(spark):
        if form == "sql":
            done(spark.sql("SELECT * FROM sales JOIN shops USING (shop) JOIN products USING (product)"))
        else:
            done(sales.join(spark.table("shops"), "shop").join(spark.table("products"), "product"))
    spark.stop()


def broadcast_too_large(*, planted: bool, rows: int = 6_000_000) -> None:
    """A hint of somebody broadcasts the large table of a join, and not the small one."""
    spark = session("pairs", sql_shuffle_partitions="4", sql_autoBroadcastJoinThreshold="-1", driver_maxResultSize="0")
    small = spark.range(0, 20_000, 1, 4).select((F.col("id") * 30).alias("id"), F.hex("id").alias("text"))
    large = spark.range(0, rows, 1, 4).withColumn("note", F.repeat(F.hex(F.xxhash64("id")), 5))
    with place(spark):
        joined = small.join(F.broadcast(large), "id") if planted else large.join(F.broadcast(small), "id")
        done(joined.select("id", "text", "note"))
    spark.stop()


def default_key(*, planted: bool, rows: int = 400_000) -> None:
    """Orders with visits of their customers: of all, or without those that have the name of nobody."""
    spark = session("customers", sql_shuffle_partitions="4")
    known = F.concat(F.lit("c"), "id")
    orders = spark.range(0, rows, 1, 4).select(
        "id", F.when(F.col("id") % 20 == 0, "unknown").otherwise(known).alias("customer")
    )
    visits = spark.range(0, rows, 1, 4).select(
        F.col("id").alias("visit"), F.when(F.col("id") % 20 == 1, "unknown").otherwise(known).alias("customer")
    )
    if not planted:
        visits = visits.where("customer <> 'unknown'")
    with place(spark):
        joined = orders.join(visits, "customer", "left")
        done(joined.groupBy((F.col("id") % 10).alias("part")).agg(F.count("*"), F.max("visit")))
    spark.stop()


def lost_pushdown(*, planted: bool, rows: int = 2_000_000, times: int = 32) -> None:
    """Some accounts of many, whose numbers are texts: compared with numbers, or with texts."""
    spark = session("accounts")
    notes = [F.sha1(F.concat("id", F.lit(each))).alias(f"note{each}") for each in range(4)]
    accounts = spark.range(0, rows, 1, 4).select(F.format_string("%09d", "id").alias("account"), *notes)
    accounts.write.option("parquet.block.size", str(2**21)).parquet("accounts")
    with place(spark):
        for number in range(0, rows, rows // times):
            key = number if planted else f"{number:09d}"
            spark.read.parquet("accounts").where(F.col("account") == key).collect()
    spark.stop()


def explode(*, planted: bool, form: str, rows: int = 1_500_000, times: int = 200) -> None:
    """The most of an array of each row: of rows that `explode` makes and a shuffle brings together, or in the row."""
    spark = session("most", sql_shuffle_partitions="4")
    days = F.expr(f"sequence(id, id + {times - 1})")
    spark.range(0, rows, 1, 4).select("id", days.alias("days")).createOrReplaceTempView("sales")
    with place(spark):
        if not planted:
            done(spark.sql("SELECT id, array_max(days) AS most FROM sales"))
        elif form == "sql":
            exploded = "SELECT id, day FROM sales LATERAL VIEW explode(days) AS day"
            done(spark.sql(f"SELECT id, max(day) AS most FROM ({exploded}) GROUP BY id"))
        else:
            rows_of_days = spark.table("sales").select("id", F.explode("days").alias("day"))
            done(rows_of_days.groupBy("id").agg(F.max("day").alias("most")))
    spark.stop()


def repeated_scan(*, planted: bool, form: str, lines: int = 800_000, times: int = 12) -> None:
    """Figures of the same JSON files, which are read for each, or kept."""
    folder = Path("sales")
    folder.mkdir(exist_ok=True)
    for number in range(4):
        rows = (
            f'{{"id":{row},"shop":{row % 64},"price":{row % 97},"note":"a note {row}"}}' for row in range(lines // 4)
        )
        (folder / f"{number}.json").write_text("\n".join(rows), encoding="utf-8")
    spark = session("figures")
    sales = spark.read.schema("id long, shop int, price double, note string").json(str(folder))
    if not planted:
        sales.cache()
    sales.createOrReplaceTempView("sales")
    with place(spark):
        for number in range(times):
            if form == "sql":
                spark.sql(f"SELECT sum(price), max(note) FROM sales WHERE shop % {times} = {number}").collect()
            elif form == "ml":
                _fitted(sales.where(F.col("shop") % times == number))
            else:
                sales.where(F.col("shop") % times == number).agg(F.sum("price"), F.max("note")).collect()
    spark.stop()


def _fitted(sales: DataFrame) -> None:
    from pyspark.ml.feature import StringIndexer

    StringIndexer(inputCol="shop", outputCol="index").fit(sales)


def missing_cache(*, planted: bool, form: str, rows: int = 300_000, times: int = 6) -> None:
    """Figures of scores that are computed anew for each, or kept."""
    spark = session("scores")
    if form == "rdd":
        numbers = spark.sparkContext.range(0, 3 * rows, 1, 4).map(hashed)
        kept = numbers if planted else numbers.cache()
        with place(spark):
            for _ in range(times):
                kept.filter(bool).count()
    else:
        scores = spark.range(0, rows, 1, 4).select("id", digest("id", 5).alias("score"))
        scores = scores if planted else scores.cache()
        scores.createOrReplaceTempView("scores")
        with place(spark):
            for number in range(times):
                if form == "sql":
                    spark.sql(f"SELECT max(score), count(*) FROM scores WHERE id % 7 <> {number}").collect()
                elif form == "ml":
                    scaled(scores.where(F.col("id") % 7 != number).select(F.hash("score").alias("score")))
                else:
                    scores.where(F.col("id") % 7 != number).agg(F.max("score"), F.count("id")).collect()
    spark.stop()


def unused_cache(*, planted: bool, form: str, rows: int = 5_000_000) -> None:
    """Texts that are kept, and used once; or not kept."""
    spark = session("kept")
    texts = spark.range(0, rows, 1, 4).select("id", F.repeat(F.sha2(F.col("id").cast("string"), 512), 4).alias("text"))
    if planted:
        texts = texts.cache()
    with place(spark):
        if form == "sql":
            texts.createOrReplaceTempView("texts")
            spark.sql("SELECT max(text) FROM texts").collect()
        else:
            texts.agg(F.max("text")).collect()
    spark.stop()


def newest(*, planted: bool, rows: int = 400_000) -> None:
    """The newest order of each customer: the first one behind a sort, whose order no shuffle keeps, or the largest."""
    spark = session("newest", sql_shuffle_partitions="8", sql_adaptive_enabled="false")
    orders = spark.range(0, rows, 1, 8).select(
        "id", (F.col("id") % 5000).alias("customer"), F.xxhash64("id").alias("placed"), digest("id", 1).alias("note")
    )
    with place(spark):
        if planted:
            done(orders.orderBy(F.desc("placed")).dropDuplicates(["customer"]))
        else:
            done(orders.groupBy("customer").agg(F.max_by(F.struct("id", "placed", "note"), "placed").alias("newest")))
    spark.stop()


if __name__ == "__main__":
    main(
        skewed_join,
        cartesian,
        broadcast_missing,
        broadcast_too_large,
        default_key,
        lost_pushdown,
        explode,
        repeated_scan,
        missing_cache,
        unused_cache,
        newest,
    )
