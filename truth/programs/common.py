"""What all programs share: a session, work for a processor, and the mark of the place of a cause."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

PLACE: Final = "truth.place"
"""The local property of the jobs in which a cause is; the recorder takes it out of the log."""


def main(*programs: Callable[..., None]) -> None:
    """Runs one program of a file: `python FILE NAME PARAMETERS`, whose parameters are JSON."""
    {program.__name__: program for program in programs}[sys.argv[1]](**json.loads(sys.argv[2]))


def session(name: str, **settings: str) -> SparkSession:
    """A session; `_` stands for a dot. The recorder says which master."""
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(f"spark.{key.replace('_', '.')}", value)
    return builder.getOrCreate()


@contextmanager
def place(spark: SparkSession) -> Iterator[None]:
    """The jobs within are where the cause is, in both twins; the line is that of the `with`."""
    caller: Any = sys._getframe(2)
    spark.sparkContext.setLocalProperty(PLACE, f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno}")
    yield
    spark.sparkContext.setLocalProperty(PLACE, None)  # type: ignore[arg-type] # its type lacks what its text allows


def digest(column: str, rounds: int = 4) -> Column:
    """Work for a processor: the digest of a digest, some times."""
    result = F.col(column).cast("string")
    for _ in range(rounds):
        result = F.sha2(F.repeat(result, 4), 512)
    return result


def hashed(number: int, rounds: int = 20) -> int:
    """Work for a processor in Python: as `digest`."""
    content = str(number).encode()
    for _ in range(rounds):
        content = sha256(content * 4).digest()
    return content[0]


def done(frame: DataFrame) -> None:
    """Computes all rows and keeps none."""
    frame.write.format("noop").mode("overwrite").save()


def scaled(numbers: DataFrame) -> None:
    """Fits a scaler of MLlib to the only column of numbers."""
    from pyspark.ml.feature import StandardScaler, VectorAssembler

    features = VectorAssembler(inputCols=numbers.columns, outputCol="features").transform(numbers)
    StandardScaler(inputCol="features", outputCol="scaled").fit(features)
