"""A notebook's session that stays for as long as somebody has it open."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tests.e2e.stack import running_in

PROGRAM: Final = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("notebook").getOrCreate()
print(spark.range(9).count(), flush=True)
for _ in sys.stdin:
    print(spark.range(9).count(), flush=True)
"""


@contextmanager
def notebook() -> Iterator[Callable[[], str]]:
    """A session in Jupyter's container, with cores of its own; calling it counts 9 rows with Spark, anew."""
    with running_in("jupyter", "python", "-c", PROGRAM) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "9\n"

        def count() -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        yield count
