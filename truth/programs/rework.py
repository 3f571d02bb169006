"""Work that is done more often than needed: plans made again in loops, rows multiplied, results computed again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from truth.programs.common import digest, done, hashed, main, place, session


def renames(*, planted: bool, columns: int = 180, tables: int = 3) -> None:
    """Columns of wide tables that get other names one by one, and some that are dropped one by one; or all at once."""
    spark = session("names")
    kept = columns * 3 // 4
    for _ in range(tables):
        sales = spark.range(0, 100_000, 1, 4).select(
            "id", *[(F.col("id") * each).alias(f"c{each}") for each in range(columns)]
        )
        with place(spark):
            if planted:
                for each in range(kept):
                    sales = sales.withColumnRenamed(f"c{each}", f"amount_{each}")
                for each in range(kept, columns):
                    sales = sales.drop(f"c{each}")
            else:
                sales = sales.select("id", *[F.col(f"c{each}").alias(f"amount_{each}") for each in range(kept)])
            done(sales)
    spark.stop()


def unions(*, planted: bool, months: int = 300, rows: int = 1000) -> None:
    """The sales of months, which a loop appends one by one; or which are one table."""
    spark = session("months")

    def of(first: int, last: int) -> DataFrame:
        month, shop, price = F.floor(F.col("id") / rows), F.col("id") % 64, F.col("id") % 97
        return spark.range(first * rows, last * rows, 1, 1).select(
            "id", month.alias("month"), shop.alias("shop"), price.alias("price")
        )

    with place(spark):
        if planted:
            sales = of(0, 1)
            for month in range(1, months):
                sales = sales.unionByName(of(month, month + 1))
        else:
            sales = of(0, months)
        done(sales.coalesce(4).groupBy("shop").agg(F.sum("price"), F.max("month")))
    spark.stop()


def branches(*, planted: bool, codes: int = 3000) -> None:
    """The shops of codes: by a condition for each code, or by a join with a table of them."""
    spark = session("codes")
    sales = spark.range(0, 20_000, 1, 4).select("id", (F.col("id") % codes).alias("code"))
    with place(spark):
        if planted:
            shop = F.when(F.col("code") == 0, "shop 0")
            for code in range(1, codes):
                shop = shop.when(F.col("code") == code, f"shop {code}")
            done(sales.select("id", shop.alias("shop")))
        else:
            known = spark.createDataFrame([(code, f"shop {code}") for code in range(codes)], "code long, shop string")
            done(sales.join(F.broadcast(known), "code").select("id", "shop"))
    spark.stop()


def nights(*, planted: bool, form: str, stays: int = 600_000) -> None:
    """The prices of stays: of a row for each night, or the difference of two sums of prices."""
    spark = session("stays", sql_shuffle_partitions="4")
    first, last = F.expr("id % 300 + 1"), F.expr("id % 300 + 300 + id % 60")
    spark.range(0, stays, 1, 4).select("id", first.alias("first"), last.alias("last")).createOrReplaceTempView("stays")
    days = [(day, 40 + day % 97) for day in range(700)]
    sums = [(day, sum(price for _, price in days[: day + 1])) for day, _ in days]
    spark.createDataFrame(days, "day long, price long").createOrReplaceTempView("prices")
    spark.createDataFrame(sums, "day long, total long").createOrReplaceTempView("totals")
    with place(spark):
        if not planted:
            ends = "JOIN totals AS a ON a.day = first - 1 JOIN totals AS b ON b.day = last"
            done(spark.sql(f"SELECT /*+ BROADCAST(a, b) */ id, b.total - a.total AS price FROM stays {ends}"))
        elif form == "sql":
            nights = "SELECT id, explode(sequence(first, last)) AS day FROM stays"
            prices = f"SELECT /*+ BROADCAST(prices) */ id, price FROM ({nights}) JOIN prices USING (day)"
            done(spark.sql(f"SELECT id, sum(price) AS price FROM ({prices}) GROUP BY id"))
        else:
            each = spark.table("stays").withColumn("day", F.explode(F.sequence("first", "last")))
            priced = each.join(F.broadcast(spark.table("prices")), "day")
            done(priced.groupBy("id").agg(F.sum("price").alias("price")))
    spark.stop()


def positions(*, planted: bool, orders: int = 240_000, items: int = 60) -> None:
    """A figure of the items of each order: of rows that each have a copy of the order's note, or within the row."""
    spark = session("orders", sql_shuffle_partitions="4")
    note = F.concat(*[F.sha2(F.concat("id", F.lit(each)), 512) for each in range(4)])
    prices = F.expr(f"transform(sequence(1, {items}), item -> (id * item) % 97)")
    rows = spark.range(0, orders, 1, 4).select("id", note.alias("note"), prices.alias("prices"))
    with place(spark):
        if planted:
            each = rows.select("id", "note", F.posexplode("prices").alias("position", "price"))
            totals = each.groupBy("id", "note").agg(F.sum(F.col("position") * F.col("price")).alias("total"))
        else:
            weighted = "transform(prices, (price, position) -> price * position)"
            total = F.expr(f"aggregate({weighted}, 0L, (sum, each) -> sum + each)")
            totals = rows.select("id", "note", total.alias("total"))
        done(totals)
    spark.stop()


def outputs(*, planted: bool, lines: int = 500_000) -> None:
    """Sales by shop and day with the regions of the shops, which four outputs need: computed for each, or kept."""
    folder = Path("sales")
    folder.mkdir()
    for number in range(4):
        of_file = range(number, lines, 4)
        rows = (f"{row},{row % 640},{row % 365},{row % 97},a note about it {row}" for row in of_file)
        (folder / f"{number}.csv").write_text("\n".join(rows), encoding="utf-8")
    spark = session("outputs", sql_shuffle_partitions="4")
    sales = spark.read.schema("id long, shop int, day int, price double, note string").csv(str(folder))
    shops = spark.range(0, 640).select(F.col("id").cast("int").alias("shop"), (F.col("id") % 7).alias("region"))
    by_day = (
        sales.join(shops, "shop")
        .groupBy("region", "shop", "day")
        .agg(F.sum("price").alias("price"), F.max(digest("note")).alias("note"))
    )
    if not planted:
        by_day = by_day.cache()
    with place(spark):
        by_day.groupBy("region").agg(F.sum("price"), F.max("note")).write.json("regions")
        by_day.groupBy("day").agg(F.sum("price"), F.max("note")).write.json("days")
        by_day.where("region = 3").orderBy("price").write.json("third")
        by_day.select("shop", "day", "price", "note").write.json("all")
    spark.stop()


def shuffled(*, planted: bool, rows: int = 1_000_000, times: int = 4) -> None:
    """Figures of groups, whose shuffle Spark keeps by itself: what comes behind it is computed for each, or kept."""
    spark = session("groups")
    groups = spark.sparkContext.range(0, rows, 1, 4).map(lambda row: (row % 4096, row)).groupByKey(4)

    def of(number: int) -> Callable[[Any], bool]:
        return lambda pair: pair[1] % times == number

    def scored(group: Any) -> Any:
        return sum(hashed(row, 20) for row in group)

    scores = groups.mapValues(scored)
    if not planted:
        scores = scores.cache()
    with place(spark):
        for each in range(times):
            scores.filter(of(each)).count()
    sizes = spark.sparkContext.range(0, rows, 1, 4).map(lambda row: (hashed(row, 10), 1)).reduceByKey(int.__add__, 4)
    for each in range(times):  # these start from the shuffle, too, and have nothing to compute behind it
        sizes.filter(of(each)).count()
    spark.stop()


def counted(*, planted: bool, rows: int = 400_000) -> None:
    """The best sales of each shop, which are counted, checked and written: computed for each, or kept."""
    spark = session("best", sql_shuffle_partitions="4")
    spark.range(0, rows, 1, 4).select(
        "id", F.expr("id % 500").alias("shop"), F.expr("id % 500 % 9").alias("region"), digest("id", 4).alias("score")
    ).createOrReplaceTempView("sales")
    ranked = "SELECT *, row_number() OVER (PARTITION BY shop, region ORDER BY score) AS place FROM sales"
    spark.sql(f"SELECT * FROM ({ranked}) WHERE place <= 100").createOrReplaceTempView("best")
    if not planted:
        spark.sql("CACHE LAZY TABLE best")
    with place(spark):
        spark.sql("SELECT count(*), max(score) FROM best").collect()
        spark.sql("SELECT region, min(score) FROM best GROUP BY region").collect()
        done(spark.sql("SELECT * FROM best WHERE region <> 3"))
        spark.sql("CREATE TABLE best_of_shops USING json LOCATION 'best' AS SELECT * FROM best")
    spark.stop()


def distinct(*, planted: bool, rows: int = 900_000, columns: int = 6) -> None:
    """How many customers, products and so on each shop has: counted, for which each row is copied, or estimated."""
    spark = session("distinct", sql_shuffle_partitions="4")
    visits = spark.range(0, rows, 1, 4).select(
        (F.col("id") % 50).alias("shop"),
        *[F.sha2(F.hex(F.xxhash64("id", F.lit(each)) % (rows // 2)), 256).alias(f"c{each}") for each in range(columns)],
    )
    counted = F.count_distinct if planted else F.approx_count_distinct
    with place(spark):
        done(visits.groupBy("shop").agg(*[counted(f"c{each}") for each in range(columns)]))
    spark.stop()


def closure(*, planted: bool, names: int = 1_200_000, tasks: int = 40) -> None:
    """Names of products by a dictionary of all of them, which each task gets with the function, or each worker once."""
    spark = session("products")
    known: Any = {each: f"product {each}" for each in range(names)}
    sent = None if planted else spark.sparkContext.broadcast(known)
    carried: Any = known if planted else None

    def name_of(product: int) -> Any:
        names_of_products = carried if sent is None else sent.value
        return names_of_products.get(product)

    name = F.udf(name_of, "string")
    with place(spark):
        spark.range(0, 200_000, 1, tasks).select(name("id").alias("name")).agg(F.count("name"), F.max("name")).collect()
    spark.stop()


def inferred(*, planted: bool, rows: int = 1_500_000) -> None:
    """Amounts by shop from lines of JSON, whose schema Spark infers by reading all of them, or is given."""
    spark = session("orders", sql_shuffle_partitions="4")
    numbers = ", ".join(f"'part{each}', id % {each + 7}" for each in range(12))
    order = (
        f"named_struct('id', id, 'shop', id % 500, 'amount', id % 97 * 0.5, 'note', sha2(string(id), 256), {numbers})"
    )
    spark.range(0, rows, 1, 4).selectExpr(f"to_json({order}) AS value").write.text("orders")
    reader = spark.read if planted else spark.read.schema("id long, shop long, amount double")
    with place(spark):
        orders = reader.json("orders")
    done(orders.groupBy("shop").agg(F.sum("amount"), F.count("id")))
    spark.stop()


def called_twice(*, planted: bool, rows: int = 600_000) -> None:
    """Scores above a limit, for which Spark calls the function in the filter and again behind it, or once."""
    from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf

    spark = session("scores")

    def score(numbers: Any) -> Any:
        return numbers.map(lambda number: hashed(number, 30))

    of: Any = pandas_udf(score, "long", PandasUDFType.SCALAR)
    if not planted:
        of = of.asNondeterministic()
    with place(spark):
        done(spark.range(0, rows, 1, 4).withColumn("score", of("id")).where("score >= 10").select("id", "score"))
    spark.stop()


def patterns(*, planted: bool, rows: int = 60_000) -> None:
    """The status and the time of requests of a log: by a pattern of the whole line, or of the words before them."""
    spark = session("requests", sql_shuffle_partitions="4")
    head = "concat('2026-11-01 INFO [worker-', id % 7, '] handled GET /orders/', id, ' trace=', sha2(string(id), 256))"
    line = f"concat({head}, ' user=u', id % 5000, ' status=', 200 + id % 4 * 100, ' took=', id % 900, 'ms')"
    spark.range(0, rows, 1, 4).selectExpr(f"{line} AS message").write.parquet("requests")
    whole = r"(.*)\s+(.*)\[(.*)\](.*)user=(.*)\s(.*)status=(.*)\s+took=(.*)ms"
    status, took = ((whole, 7), (whole, 8)) if planted else ((r"status=(\d+)", 1), (r"took=(\d+)", 1))
    with place(spark):
        done(
            spark.read.parquet("requests").select(
                F.regexp_extract("message", *status).alias("status"), F.regexp_extract("message", *took).alias("took")
            )
        )
    spark.stop()


def looped(*, planted: bool, regions: int = 60, rows: int = 1_000_000) -> None:
    """The sales of each region: a loop asks for one after the other, or one query for all."""
    spark = session("regions", sql_shuffle_partitions="4")
    region = (F.col("id") % regions).alias("region")
    spark.range(0, rows, 1, 4).select("id", region, (F.col("id") % 97).alias("price")).write.parquet("sales")
    sales = spark.read.parquet("sales")
    totals: dict[int, Any] = {}
    with place(spark):
        if planted:
            for each in range(regions):
                totals[each] = sales.where(F.col("region") == each).agg(F.sum("price")).collect()[0][0]
        else:
            totals = dict(sales.groupBy("region").agg(F.sum("price")).collect())
    spark.stop()


def sliding(*, planted: bool, rows: int = 300_000, width: int = 3000) -> None:
    """Means of the last values of sensors: of a frame that slides, or by the difference of two running sums."""
    spark = session("sensors", sql_shuffle_partitions="2", sql_adaptive_coalescePartitions_enabled="false")
    values = spark.range(0, rows, 1, 4).select(
        "id", (F.col("id") % 16).alias("sensor"), (F.col("id") * 7 % 1001).alias("value")
    )
    by = Window.partitionBy("sensor").orderBy("id")
    with place(spark):
        if planted:
            done(values.select("id", F.sum("value").over(by.rowsBetween(1 - width, 0)).alias("total")))
        else:
            running = values.select(
                "id", "sensor", F.sum("value").over(by.rowsBetween(Window.unboundedPreceding, 0)).alias("s")
            )
            before = F.coalesce(F.lag("s", width).over(by), F.lit(0))
            done(running.select("id", (F.col("s") - before).alias("total")))
    spark.stop()


def fields(*, planted: bool, rows: int = 600_000, each: int = 12) -> None:
    """The fields of documents of JSON: each of them by a parse of its own, or all by one."""
    spark = session("documents")
    names = [f"field{number}" for number in range(each)]
    numbers = ", ".join(f"'{name}', id % {number + 7}" for number, name in enumerate(names))
    document = f"to_json(named_struct('note', sha2(string(id), 256), {numbers}))"
    spark.range(0, rows, 1, 4).selectExpr(f"{document} AS body").write.parquet("documents")
    documents = spark.read.parquet("documents")
    with place(spark):
        if planted:
            done(documents.select(*[F.get_json_object("body", f"$.{name}").alias(name) for name in names]))
        else:
            schema = ", ".join(f"{name} string" for name in names)
            done(documents.select(F.from_json("body", schema).alias("parsed")).select("parsed.*"))
    spark.stop()


if __name__ == "__main__":
    main(
        renames,
        unions,
        branches,
        nights,
        positions,
        outputs,
        shuffled,
        counted,
        distinct,
        closure,
        inferred,
        patterns,
        called_twice,
        looped,
        sliding,
        fields,
    )
