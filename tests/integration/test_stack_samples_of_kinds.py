"""Samples of all kinds of Python functions that Spark calls, and of a streaming query, in a program that ends hard."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from spark_app.eventlog import reader
from spark_app.report.limits import Limits
from spark_app.report.scope import scope
from spark_app.report.sections.stack_samples import StackSection, stack_samples
from spark_app.stack_samples import stack_profile
from tests import observing

PROGRAM: Final = """
import os
import threading
import sitecustomize
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.range(0, 2000, 1, 2)


def spin(turns):
    total = 0
    for index in range(turns):
        total += index % 7
    return total


def pickled(number):
    return spin(5_000) + number


def arrow(number):
    return spin(5_000) + number


def pandas(numbers):
    return numbers + spin(5_000_000)


def map_pandas(batches):
    for batch in batches:
        spin(5_000_000)
        yield batch


def map_arrow(batches):
    for batch in batches:
        spin(5_000_000)
        yield batch


def apply_pandas(group):
    spin(5_000_000)
    return group


def rdd(number):
    return spin(5_000) + number


@F.udtf(returnType="number: int")
class Table:
    def eval(self, number):
        spin(5_000_000)
        yield number,


def thread():
    print(spark.sparkContext.parallelize(range(2000), 2).map(rdd).sum())


def each_batch(batch, number):
    batch.select(F.udf(streamed, "long")("value")).write.format("noop").mode("append").save()
    if number == 3:
        enough.set()


def streamed(number):
    return spin(50_000) + number


print(sitecustomize.MARK)
print(rows.select(F.udf(pickled, "long")("id").alias("all")).agg(F.sum("all")).first()[0])
print(rows.select(F.udf(arrow, "long", useArrow=True)("id").alias("all")).agg(F.sum("all")).first()[0])
print(rows.select(F.pandas_udf(pandas, "long")("id").alias("all")).agg(F.sum("all")).first()[0])
print(rows.mapInPandas(map_pandas, "id long").count(), rows.mapInArrow(map_arrow, "id long").count())
print(rows.groupBy((F.col("id") % 2).alias("key")).applyInPandas(apply_pandas, "id long").count())
print(Table(F.lit(5)).count())
threads = [threading.Thread(target=thread)]
[each.start() for each in threads]
[each.join() for each in threads]
enough = threading.Event()
rate = spark.readStream.format("rate").option("rowsPerSecond", 40).load()
query = rate.writeStream.queryName("orders").foreachBatch(each_batch).trigger(processingTime="1 second").start()
enough.wait(60)
query.stop()
print("stopped", flush=True)
os._exit(7)
"""
UDFS: Final = ("pickled", "arrow", "pandas", "map_pandas", "map_arrow", "apply_pandas", "rdd", "Table.eval", "streamed")


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], StackSection]:
    """A run of the program, which has a `sitecustomize` of its own, and the section of its report."""
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "sitecustomize.py").write_text("MARK = 'of the program'\n", encoding="utf-8")
    done = observing.observed(folder, PROGRAM, "--profile", "--profile-hertz", "49", PYTHONPATH=str(folder))
    return done, _section(observing.log_of(folder))


def _section(log: Path) -> StackSection:
    found = stack_samples(scope(reader.read(log).app, None), stack_profile.of_log(log), Limits())
    assert found is not None
    return found


def test_each_kind_of_function_has_samples_in_its_stage(
    observed: tuple[subprocess.CompletedProcess[str], StackSection],
) -> None:
    """Scalar, Arrow and pandas functions, those of iterators, groups, tables and RDDs, of threads and of streams."""
    _, section = observed
    of_stages = [each for row in section.stages for each in row.part.functions.items()]
    assert {function.name for function, time in of_stages if time.is_udf} == {*UDFS}
    assert section.in_stages.ms >= 0.95 * section.of_tasks.ms
    assert "each_batch" in {function.name for function in section.profile.parts["driver"].functions}


def test_a_streaming_query_is_one_step(
    observed: tuple[subprocess.CompletedProcess[str], StackSection],
) -> None:
    """Samples are of the stages of its micro-batches; the list of functions has them together."""
    _, section = observed
    assert len(section.steps["orders"]) >= 3
    assert "orders" in {hot.place for hot in section.functions_of_steps if hot.function.name == "spin"}


def test_output_and_exit_code_are_those_of_the_program(
    observed: tuple[subprocess.CompletedProcess[str], StackSection],
) -> None:
    """Also where it ends without any code of Python's at its exit."""
    done, _ = observed
    assert done.returncode == 7
    # Sums of 2000 numbers, each with what `spin` gives of 5,000 and of 5,000,000.
    few, many = (2000 * sum(each % 7 for each in range(turns)) + 1999 * 1000 for turns in (5_000, 5_000_000))
    numbers = ["of the program", few, few, many, "2000 2000", 2000, 1, few, "stopped"]
    assert done.stdout.splitlines() == [str(each) for each in numbers]
