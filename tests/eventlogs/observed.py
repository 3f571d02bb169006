"""Functions of each kind that Spark takes, as they are and observed: `observed.py FOLDER` leaves a log in FOLDER/logs.

Prints as JSON what came of them, and what there is in a worker.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas import functions as pandas_functions

sys.path.insert(0, str(Path(__file__).parents[2] / "workers"))  # of the driver; workers do not have it
from pyspark_observed import observed

ROWS: Final = 4000
PARTITIONS: Final = 40
KEYS: Final = 7
"""Groups; the second frame of a cogroup has half of the rows."""
BATCH: Final = 30
SETTINGS: Final[dict[str, bool | float | int | str | None]] = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH),
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

pandas_udf: Any = pandas_functions.pandas_udf  # its stubs ask for the kind, which the type hints of a function give
Change = Callable[[Callable[..., Any]], Any]


def map_pandas(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Each row, twice."""
    for frame in frames:
        yield frame
        yield frame


def map_arrow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first ten rows of each batch."""
    for batch in batches:
        yield batch.slice(0, 10)


def group(frame: pd.DataFrame) -> pd.DataFrame:
    """The first row of a group."""
    return frame.sort_values("id").head(1)


def group_with_key(key: tuple[int], frame: pd.DataFrame) -> pd.DataFrame:
    """How many there are."""
    return pd.DataFrame({"id": [len(frame)], "key": [key[0]]})


def group_arrow(table: pa.Table) -> pa.Table:
    """A group as it is."""
    return table


def cogroup(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """What both sides have."""
    return left.merge(right[["id"]], on="id")


def column(ids: pd.Series, keys: pd.Series) -> pd.Series:
    """A column of two."""
    return ids + keys


def columns(parts: Iterator[pd.Series]) -> Iterator[pd.Series]:
    """A column of one, batch by batch."""
    for part in parts:
        yield part * 2


def pairs(parts: Iterator[tuple[pd.Series, pd.Series]]) -> Iterator[pd.Series]:
    """A column of two, batch by batch."""
    for ids, keys in parts:
        yield ids - keys


def total(ids: pd.Series) -> int:
    """One value of a group."""
    return int(ids.sum())


def failing(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """A function that fails on a row of its second batch."""
    for part in parts:
        if (part["id"] == BATCH + 10).any():
            raise LookupError(f"no {BATCH + 10}")
        yield part


def failing_column(ids: pd.Series) -> pd.Series:
    """One that fails at once."""
    raise KeyError("nothing")


def within(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """What there is in a worker while it works."""
    for part in parts:
        strange = [
            name for name in sys.modules if name.partition(".")[0] in ("spark_app", "opentelemetry", "pyspark_observed")
        ]
        text = json.dumps([strange, [thread.name for thread in threading.enumerate()]])
        yield pd.DataFrame({"outcome": [text] * min(1, len(part))})


def of_all(rows: DataFrame, change: Change) -> dict[str, list[Any]]:
    """The results of all kinds of functions, in an order that is always the same."""
    by_key, schema = rows.groupBy("key"), "id long, key long"
    half = rows.where(F.col("id") < ROWS // 2).groupBy("key")
    scalar = pandas_udf(change(column), "long")("id", "key")
    frames = {
        "map_pandas": rows.mapInPandas(change(map_pandas), schema),
        "map_arrow": rows.mapInArrow(change(map_arrow), schema),
        "group": by_key.applyInPandas(change(group), schema),
        "group_with_key": by_key.applyInPandas(change(group_with_key), schema),
        "group_arrow": by_key.applyInArrow(change(group_arrow), schema),
        "cogroup": by_key.cogroup(half).applyInPandas(change(cogroup), schema),
        "column": rows.select(scalar),
        "columns": rows.select(pandas_udf(change(columns), "long")("id")),
        "pairs": rows.select(pandas_udf(change(pairs), "long")("id", "key")),
        "total": by_key.agg(pandas_udf(change(total), "long")("id")),
        "limit": rows.mapInPandas(change(map_pandas), schema).limit(3),
    }
    return {name: sorted(map(list, frame.collect())) for name, frame in frames.items() if name != "limit"} | {
        "limit": [len(frames["limit"].collect())]
    }


def errors_of(rows: DataFrame, change: Change) -> list[list[str]]:
    """What the caller of functions that fail gets: the class and the message."""
    failing_ones = (
        rows.mapInPandas(change(failing), "id long, key long"),
        rows.select(pandas_udf(change(failing_column), "long")("id")),
    )
    return [_error_of(frame) for frame in failing_ones]


def _error_of(frame: DataFrame) -> list[str]:
    try:
        frame.collect()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
        said = [line for line in str(error).splitlines() if line.startswith(("LookupError", "KeyError"))]
        return [type(error).__name__, *said]
    return ["nothing"]


def main(folder: Path) -> None:
    """All of it, in one session."""
    logs = folder / "the logs"
    (logs / ".python" / "app-9").mkdir(parents=True)  # its log is gone
    (logs / ".python" / "app-0").mkdir()
    (logs / "eventlog_v2_app-0").mkdir()
    builder = SparkSession.builder.master("local[2]").appName("functions").config("spark.eventLog.dir", logs.as_uri())
    spark = builder.config(map=SETTINGS).getOrCreate()
    rows = spark.range(0, ROWS, 1, PARTITIONS).withColumn("key", F.col("id") % KEYS)
    outcome: dict[str, Any] = {
        "plain": [of_all(rows, lambda function: function), errors_of(rows, lambda function: function)],
        "observed": [of_all(rows, observed), errors_of(rows, observed)],
        "within": [json.loads(row.outcome) for row in rows.mapInPandas(observed(within), "outcome string").collect()],
    }
    spool = logs / ".python" / spark.sparkContext.applicationId
    spool.rename(folder / "aside")
    spool.touch()
    outcome["unwritable"] = [sorted(map(list, rows.mapInPandas(observed(map_pandas), "id long, key long").collect()))]
    spool.unlink()
    (folder / "aside").rename(spool)
    spark.stop()
    outcome["spools"] = sorted(left.name for left in spool.parent.iterdir())
    print(json.dumps(outcome))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main(Path(sys.argv[1]))
