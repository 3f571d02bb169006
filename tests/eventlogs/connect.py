"""Programs of Spark Connect: `python connect.py PROGRAM REMOTE FOLDER` runs one as a client.

REMOTE is `local[2]`, which starts a server in the program's own JVM, or the `sc://` address of a server.
"""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

PASSWORD: Final = "hunter2"
INTERRUPTED_SECONDS: Final = 20
"""An operation that is canceled before it has submitted its job leaves a job that runs on."""


def sales(spark: Any, folder: Path) -> None:
    """Writes totals, asks for rows in SQL, and names a password in the options of a view."""
    orders = spark.range(1000).withColumn("amount", F.col("id") * 2)
    totals = orders.groupBy((F.col("id") % 7).alias("shop")).agg(F.sum("amount").alias("total"))
    totals.write.mode("overwrite").parquet(str(folder / "totals"))
    assert len(totals.collect()) == 7
    orders.createOrReplaceTempView("orders")
    rows = spark.sql("SELECT id % 3 AS shop, count(*) AS orders, 'Zoë' AS owner\nFROM orders GROUP BY 1").toPandas()
    assert len(rows) == 3
    options = f"path '{folder / 'totals'}', password '{PASSWORD}'"
    spark.sql(f"CREATE TEMPORARY VIEW stock USING parquet OPTIONS ({options})")


def failing(spark: Any, folder: Path) -> None:
    """One operation fails in its analysis and one while it runs; the program goes on."""
    for statement in ("SELECT nothing FROM nowhere", "SELECT assert_true(id < 5) FROM range(10)"):
        with suppress(PySparkException):
            spark.sql(statement).collect()
    assert spark.range(5).count() == 5


def canceled(spark: Any, folder: Path) -> None:
    """Another thread of the client interrupts an operation, whose tasks run by then, and would for a minute."""

    def interrupt() -> None:
        time.sleep(INTERRUPTED_SECONDS)
        while not spark.interruptAll():
            time.sleep(0.5)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with suppress(PySparkException):
        spark.range(0, 10**11, 1, 4).selectExpr("sum(id % 7)").collect()
    thread.join()


PROGRAMS: Final[dict[str, Callable[[Any, Path], None]]] = {"sales": sales, "failing": failing, "canceled": canceled}

if __name__ == "__main__":
    program, remote, folder = sys.argv[1:]
    session = SparkSession.builder.remote(remote).getOrCreate()
    PROGRAMS[program](session, Path(folder))
    session.stop()
