"""Small programs with one planted cause each, beside a quiet twin that does the same work without it.

`python planted.py CAUSE planted|quiet FOLDER` runs one of them as a stranger would have written it: nothing of this
project is used. FOLDER has the tables of `tables` and gets the outputs. The data is scaled down so that a program takes
some 20 to 60 s on two cores; the cause takes a share of that time as it would of a longer one.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf


def session(name: str, **settings: str) -> SparkSession:
    """A session of two threads; `_` stands for a dot."""
    builder = SparkSession.builder.appName(name).master("local[2]").config("spark.ui.enabled", "false")
    for key, value in settings.items():
        builder = builder.config(f"spark.{key.replace('_', '.')}", value)
    return builder.getOrCreate()


def digest(column: str, rounds: int = 4) -> Column:
    """Work for a processor: the digest of a digest, some times."""
    result = F.col(column).cast("string")
    for _ in range(rounds):
        result = F.sha2(F.repeat(result, 4), 512)
    return result


def served(column: str) -> Column:
    """What a service of the JVM says of a row, which takes a millisecond: a column of the length of its answer."""
    return F.length(F.expr("reflect('java.lang.Thread', 'sleep', 1L)")) + F.col(column) % 7


def done(frame: DataFrame) -> None:
    """Computes all rows and keeps none."""
    frame.write.format("noop").mode("overwrite").save()


def spill(folder: str, *, is_planted: bool) -> None:
    """Four sorts, for which somebody has left no memory."""
    settings = {"memory_fraction": "0.05"} if is_planted else {}
    spark = session("rank", sql_shuffle_partitions="4", sql_adaptive_enabled="false", **settings)
    rows = spark.range(0, 1_500_000, 1, 4).select("id", F.sha2(F.col("id").cast("string"), 256).alias("text"))
    for number in range(4):
        done(rows.repartition(4, F.col("id") % (number + 7)).sortWithinPartitions("text"))
    spark.stop()


def repeated_scan(folder: str, *, is_planted: bool) -> None:
    """A dozen figures of the same CSV files."""
    spark = session("figures")
    schema = "id long, shop int, product int, price double, note string"
    sales = spark.read.csv(f"{folder}/sales.csv", schema=schema)
    if not is_planted:
        sales.cache()
    for number in range(12):
        sales.where(F.col("shop") % 12 == number).agg(F.sum("price"), F.max("note"), F.max("product")).collect()
    spark.stop()


def tiny_tasks(folder: str, *, is_planted: bool) -> None:
    """Totals by shop, in hundreds of partitions."""
    spark = session("totals", sql_shuffle_partitions="900" if is_planted else "4", sql_adaptive_enabled="false")
    rows = spark.range(0, 400_000, 1, 4).withColumn("shop", F.col("id") % 50_000)
    for _ in range(3):
        done(rows.groupBy("shop").agg(F.sum("id")))
    spark.stop()


def asked(name: str) -> str:
    """What a service says of a name, which takes its time for each question."""
    time.sleep(0.004)
    return name.upper()


def asked_together(names: Any) -> Any:
    """What it says of many names at once."""
    time.sleep(0.1)
    return names.str.upper()


def row_python_udf(folder: str, *, is_planted: bool) -> None:
    """Names that a service is asked about one by one, or in batches."""
    spark = session("ask")
    rows = spark.range(0, 6_000, 1, 4).select(F.hex("id").alias("name"))
    one_by_one: Any = F.udf(asked, "string")
    in_batches: Any = pandas_udf(asked_together, "string", PandasUDFType.SCALAR)
    done(rows.select((one_by_one if is_planted else in_batches)("name")))
    spark.stop()


def small_files_written(folder: str, *, is_planted: bool) -> None:
    """A stream whose batches write a file for each of nine partitions, or one file."""
    spark = session("stream")
    schema = "id long, shop int, product int, price double, note string"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).csv(f"{folder}/arriving")
    writer = rows.repartition(9 if is_planted else 1).writeStream.format("json").trigger(availableNow=True)
    out = f"{folder}/out-{is_planted}"
    writer.option("checkpointLocation", f"{out}-checkpoint").start(out).awaitTermination()
    spark.stop()


def small_files_read(folder: str, *, is_planted: bool) -> None:
    """Sums over thousands of small files, or over four."""
    spark = session("sums")
    spark.read.parquet(f"{folder}/{'many' if is_planted else 'few'}").agg(F.sum("price"), F.max("note")).collect()
    spark.stop()


def too_few_tasks(folder: str, *, is_planted: bool) -> None:
    """Scores of a service, asked for by one task, or by two."""
    spark = session("scores")
    rows = spark.range(0, 12_000, 1, 4)
    done((rows.coalesce(1) if is_planted else rows.repartition(4)).select(served("id")))
    spark.stop()


def unused_cache(folder: str, *, is_planted: bool) -> None:
    """Answers of a service that are kept, and used once or twice."""
    spark = session("kept")
    answers = spark.range(0, 12_000, 1, 4).select("id", served("id").alias("answer")).cache()
    for _ in range(1 if is_planted else 2):
        answers.agg(F.sum("answer")).collect()
    spark.stop()


def sort_merge_join_could_broadcast(folder: str, *, is_planted: bool) -> None:
    """Three joins with small tables, where somebody has switched broadcasts off."""
    settings = {"sql_autoBroadcastJoinThreshold": "-1"} if is_planted else {}
    spark = session("names", sql_shuffle_partitions="8", driver_memory="2g", **settings)
    rows = spark.range(0, 6_000_000, 1, 4).withColumn("note", F.repeat(F.hex(F.xxhash64("id")), 12))
    for name in ("shop", "product", "country"):
        small = spark.range(1000).select(F.col("id").alias(name), F.hex("id").alias(f"{name}_name"))
        rows = rows.withColumn(name, F.hash("note", F.lit(name)) % 500 + 500).join(small, name)
    done(rows)
    spark.stop()


def cross_join(folder: str, *, is_planted: bool) -> None:
    """Events within intervals: each is compared with each, or with those of its hour."""
    spark = session("intervals")
    events = spark.range(0, 60_000, 1, 4).select((F.col("id") * 60).alias("at"))
    intervals = spark.range(0, 40_000).select((F.col("id") * 90).alias("start"), (F.col("id") * 90 + 45).alias("end"))
    is_within = (F.col("at") >= F.col("start")) & (F.col("at") < F.col("end"))
    if not is_planted:
        is_within &= F.floor(F.col("at") / 3600) == F.floor(F.col("start") / 3600)
    done(events.join(intervals, is_within))
    spark.stop()


def cpu_starvation(folder: str, *, is_planted: bool) -> None:
    """Digests, on a machine that other programs keep busy; `record_planted` starts these."""
    spark = session("digests")
    done(spark.range(0, 600_000, 1, 64).repartition(64).select(digest("id", 6)))
    spark.stop()


def external_wait(folder: str, *, is_planted: bool) -> None:
    """Eight tasks that ask a service of this machine for prices, or compute them: of a query, and of an RDD."""
    spark = session("prices")
    with service() as url:

        def price(number: int) -> int:
            if is_planted:
                with urlopen(f"{url}/{number}") as answer:
                    return int(answer.read())
            digest = str(number).encode()
            for _ in range(150_000):
                digest = sha256(digest).digest()
            return len(digest)

        def priced(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                yield batch.assign(price=batch["id"].map(price))

        done(spark.range(0, 64, 1, 8).mapInPandas(priced, "id long, price long"))
        spark.sparkContext.parallelize(range(64), 8).map(price).collect()
    spark.stop()


@contextmanager
def service() -> Iterator[str]:
    """The address of a service that thinks about each answer for a third of a second."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(0.33)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"7")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


CAUSES: Final[dict[str, Callable[..., None]]] = {
    cause.__name__: cause
    for cause in (
        spill,
        repeated_scan,
        tiny_tasks,
        row_python_udf,
        small_files_written,
        small_files_read,
        too_few_tasks,
        unused_cache,
        sort_merge_join_could_broadcast,
        cross_join,
        cpu_starvation,
        external_wait,
    )
}
"""The programs, by the rule that must report the cause of each first."""


def tables(folder: Path) -> None:
    """Writes the inputs: CSV files, files that arrive one by one, and the same rows in many and in few files."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    def sales(rows: int) -> pa.Table:
        draw = np.random.default_rng(7)
        columns = {"id": np.arange(rows), "shop": draw.integers(0, 64, rows), "product": draw.integers(0, 999, rows)}
        notes = np.char.add("a note about the sale ", np.arange(rows).astype(str))
        return pa.table(columns | {"price": draw.random(rows) * 100, "note": notes})

    def write(name: str, table: pa.Table, *, files: int, kind: str) -> None:
        (folder / name).mkdir()
        size = -(-table.num_rows // files)
        for number in range(files):
            part = table.slice(number * size, size)
            if kind == "csv":
                options = pa_csv.WriteOptions(include_header=False, quoting_style="none")
                pa_csv.write_csv(part, folder / name / f"{number:05}.csv", options)
            else:
                pq.write_table(part, folder / name / f"{number:05}.parquet")

    write("sales.csv", sales(600_000), files=4, kind="csv")
    write("arriving", sales(3_000), files=14, kind="csv")
    write("many", sales(18_000), files=9000, kind="parquet")
    write("few", sales(18_000), files=4, kind="parquet")


if __name__ == "__main__":
    CAUSES[sys.argv[1]](sys.argv[3], is_planted=sys.argv[2] == "planted")
