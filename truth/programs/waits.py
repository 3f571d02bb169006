"""What Spark waits for: its driver, a service, Python, files, tasks that fail, executors that die."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import functions as F

from truth.programs.common import digest, done, hashed, main, place, session


def row_udf(*, planted: bool, form: str, rows: int = 12_000_000) -> None:
    """The checks of numbers: by a Python function for each row, or by Spark."""
    spark = session("checks", sql_execution_pythonUDF_arrow_enabled="false")
    sales = spark.range(0, rows, 1, 4)

    def checked(number: int) -> int:
        for _ in range(8):
            number = (number * 31 + 7) % 65537
        return number

    expression = "id"
    for _ in range(8):
        expression = f"(({expression}) * 31 + 7) % 65537"
    with place(spark):
        if form == "sql":
            spark.udf.register("checked", checked, "long")
            sales.createOrReplaceTempView("sales")
            done(spark.sql(f"SELECT id, {'checked(id)' if planted else expression} AS checked FROM sales"))
        else:
            function: Any = F.udf(checked, "long")
            done(sales.select("id", function("id") if planted else F.expr(expression)))
    spark.stop()


def external_wait(*, planted: bool, form: str, rows: int = 16_000) -> None:
    """What a service says of each row, which takes a millisecond; or digests, which take about as long."""
    spark = session("answers")
    with place(spark):
        if form == "rdd":

            def answer(number: int) -> int:
                if planted:
                    time.sleep(0.001)
                return hashed(number, 20)

            spark.sparkContext.range(0, rows, 1, 8).map(answer).sum()
        elif form == "pandas":

            def asked(batches: Any) -> Any:
                for batch in batches:
                    if planted:
                        time.sleep(0.001 * len(batch))
                    yield batch.assign(answer=batch["id"].map(hashed))

            done(spark.range(0, rows, 1, 8).mapInPandas(asked, "id long, answer long"))
        else:
            asleep = F.length(F.expr("reflect('java.lang.Thread', 'sleep', 1L)")) if planted else F.lit(4)
            done(spark.range(0, rows, 1, 8).select(asleep.alias("answer"), digest("id")))
    spark.stop()


def driver_gap(*, planted: bool, form: str, seconds: float = 15) -> None:
    """A model between two queries, which one thread of the driver computes for a while."""
    spark = session("model")
    sales = spark.range(0, 200_000, 1, 4).select("id", digest("id", 5).alias("text"))
    with place(spark):
        sales.agg(F.max("text")).collect()
        until = time.monotonic() + (seconds if planted else 0)
        while time.monotonic() < until:
            if form == "waiting":
                time.sleep(0.1)
            else:
                hashed(7, 1000)
        sales.agg(F.min("text")).collect()
    spark.stop()


def collect(*, planted: bool, form: str, rows: int = 2_000_000) -> None:
    """Totals of sales by shop: of rows that the driver collects, or of Spark."""
    spark = session("totals", driver_maxResultSize="0")
    rows *= 4 if form == "pandas" else 1  # which takes the driver less time
    sales = spark.range(0, rows, 1, 4).select(
        "id", (F.col("id") % 64).alias("shop"), F.sha2(F.hex("id"), 256).alias("text")
    )
    with place(spark):
        if not planted:
            sales.groupBy("shop").agg(F.sum("id"), F.max("text")).collect()
        elif form == "pandas":
            collected: Any = sales.toPandas()
            collected.groupby("shop").agg({"id": "sum", "text": "max"})
        else:
            totals: dict[int, int] = {}
            for row in sales.collect():
                totals[row.shop] = totals.get(row.shop, 0) + row.id
    spark.stop()


def planning(*, planted: bool, columns: int = 300) -> None:
    """Columns that are added one by one in a loop, each with a plan of its own, or all at once."""
    spark = session("columns")
    rows = spark.range(0, 100_000, 1, 4)
    with place(spark):
        if planted:
            for number in range(columns):
                rows = rows.withColumn(f"c{number}", F.col("id") + number)
        else:
            rows = rows.select("*", *[(F.col("id") + number).alias(f"c{number}") for number in range(columns)])
        done(rows)
    spark.stop()


def small_files_read(*, planted: bool, form: str, files: int = 16_000) -> None:
    """Sums over thousands of small files, or over four."""
    folder = Path("files")
    number = files if planted else 4
    folder.mkdir()
    for each in range(number):
        some = range(each * 20_000 // number, (each + 1) * 20_000 // number)
        rows = (f'{{"id":{row},"price":{row % 97}}}' for row in some)
        (folder / f"{each:05}.json").write_text("\n".join(rows), encoding="utf-8")
    spark = session("sums")
    sales = spark.read.schema("id long, price double").json(str(folder))
    sales.createOrReplaceTempView("sales")
    with place(spark):
        if form == "sql":
            spark.sql("SELECT sum(price), max(id) FROM sales").collect()
        elif form == "rdd":
            spark.sparkContext.textFile(str(folder)).map(len).sum()
        else:
            sales.agg(F.sum("price"), F.max("id")).collect()
    spark.stop()


def small_files_written(*, planted: bool, form: str, days: int = 300, rows: int = 300_000) -> None:
    """Sales by day, of which each task writes a file for each day, or one task does."""
    spark = session("days", sql_shuffle_partitions="8", sql_adaptive_enabled="false")
    sales = spark.range(0, rows, 1, 8).select("id", (F.hash("id") % days).alias("day"))
    if not planted:
        sales = sales.repartition(4, "day").withColumn("day", F.col("day") % 2)
    with place(spark):
        if form == "sql":
            sales.createOrReplaceTempView("sales")
            spark.sql("CREATE TABLE days USING parquet PARTITIONED BY (day) LOCATION 'days' AS SELECT * FROM sales")
        else:
            sales.write.partitionBy("day").mode("overwrite").json("days")
    spark.stop()


def unpruned_partitions(*, planted: bool, form: str, days: int = 100, rows: int = 80_000) -> None:
    """The sales of two days, found by a column of the files, or by the one that the folders are named by."""
    for day in range(days):
        folder = Path(f"days/day={day}")
        folder.mkdir(parents=True)
        lines = (
            f'{{"id":{row},"date":{day},"price":{row % 97},"note":"a note about it {row}"}}' for row in range(rows)
        )
        (folder / "sales.json").write_text("\n".join(lines), encoding="utf-8")
    spark = session("two days")
    sales = spark.read.schema("id long, date int, price double, note string, day int").json("days")
    sales.createOrReplaceTempView("sales")
    column = "date" if planted else "day"
    with place(spark):
        if form == "sql":
            spark.sql(f"SELECT sum(price), max(note) FROM sales WHERE {column} IN (7, 8)").collect()
        else:
            sales.where(F.col(column).isin(7, 8)).agg(F.sum("price"), F.max("note")).collect()
    spark.stop()


def failed_tasks(*, planted: bool, form: str, rows: int = 1_000_000) -> None:
    """Tasks whose first attempt fails after its work."""
    spark = session("attempts")

    def fails() -> None:
        context = TaskContext.get()
        if planted and context is not None and context.attemptNumber() == 0:
            raise ValueError("the row has no price")

    def scored(rows: Any) -> Any:
        yield from (hashed(row, 30) for row in rows)
        fails()

    def scored_batches(batches: Any) -> Any:
        for batch in batches:
            yield batch.assign(score=[hashed(row, 30) for row in batch["id"]])
        fails()

    with place(spark):
        if form == "rdd":
            spark.sparkContext.range(0, rows, 1, 4).mapPartitions(scored).sum()
        else:
            done(spark.range(0, rows, 1, 4).mapInPandas(scored_batches, "id long, score long"))
    spark.stop()


def lost_executor(*, planted: bool, rows: int = 1_600_000) -> None:
    """An executor that is killed after the map side of a shuffle has run on it."""
    spark = session("lost", sql_shuffle_partitions="4", sql_adaptive_enabled="false")
    mark = Path("killed").absolute()
    mark.unlink(missing_ok=True)

    def dies(pairs: Any) -> Any:
        if planted and not mark.exists():
            mark.touch()
            os.kill(_executor(), signal.SIGKILL)
        yield from pairs

    sales = spark.sparkContext.range(0, rows, 1, 4).map(lambda row: (row % 97, hashed(row, 20)))
    with place(spark):
        sales.groupByKey(4).mapPartitions(dies).mapValues(len).collect()
    spark.stop()


def lost_files(*, planted: bool, rows: int = 1_000_000) -> None:
    """The files of a shuffle, which somebody deletes before it is read once more."""
    spark = session("lost")
    sales = spark.sparkContext.range(0, rows, 1, 4).map(lambda row: (row % 97, hashed(row, 20)))
    grouped = sales.groupByKey(4)
    grouped.count()
    if planted:
        for file in Path(str(spark.conf.get("spark.local.dir"))).rglob("shuffle_*.data"):
            file.unlink()
    with place(spark):
        grouped.map(lambda group: len(list(group[1]))).collect()
    spark.stop()


def out_of_memory(*, planted: bool, rows: int = 1_200_000) -> None:
    """Tasks that make a long text of each part at last; for one of them an executor has too little memory once."""
    spark = session("texts")
    mark = Path("asked").absolute()
    mark.unlink(missing_ok=True)

    def counted(batches: Any) -> Any:
        import pandas as pd

        for batch in batches:
            batch["id"].map(hashed).sum()
        length = 3
        if planted and TaskContext.get().partitionId() == 0 and not mark.exists():  # type: ignore[union-attr]
            mark.touch()
            length = 400_000_000
        yield pd.DataFrame({"length": [length]})

    with place(spark):
        counts = spark.range(0, rows, 1, 4).mapInPandas(counted, "length int")
        done(counts.select(F.size(F.array_repeat(F.lit("x"), F.col("length"))).alias("size")))
    spark.stop()


def _executor() -> int:
    """The JVM of this task: the parent of the daemon of Python workers."""
    above = os.getppid()
    stat = Path(f"/proc/{above}/stat").read_text(encoding="utf-8")
    is_java = b"java" in Path(f"/proc/{above}/cmdline").read_bytes()
    return above if is_java else int(stat.rpartition(")")[2].split()[1])


if __name__ == "__main__":
    main(
        row_udf,
        external_wait,
        driver_gap,
        collect,
        planning,
        small_files_read,
        small_files_written,
        unpruned_partitions,
        failed_tasks,
        lost_executor,
        lost_files,
        out_of_memory,
    )
