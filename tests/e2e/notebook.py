"""A notebook session that stays open for a while."""

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
def notebook(container: str = "jupyter") -> Iterator[Callable[[], str]]:
    """Opens a session with its own cores in Jupyter's container or another; calling it counts 9 rows with Spark."""
    with running_in(container, "python", "-c", PROGRAM) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "9\n"

        def count() -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        yield count
