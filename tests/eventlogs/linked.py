"""A streaming query whose records were sent by spans of others: `python -m tests.eventlogs.linked FOLDER`.

The log is in FOLDER/logs. FOLDER/sent has the headers of what each batch sent. A step starts a second query, whose
batches run no job.
"""

import sys
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.engine import tracing
from spark_app.spark import job_properties, session
from spark_app.vocabulary.names import TRACEPARENT
from spark_app.warehouse.schemas import RECORD
from tests.eventlogs import hard

ROWS: Final = 40
BATCHES: Final = 2
PRODUCER: Final = "concat('00-', lpad(hex(value + 1), 32, '0'), '-', lpad(hex(value + 1), 16, '0'), '-01')"
"""The context of the span that sent the record with a value: the hexadecimal digits of a number after it."""
STEP: Final = f"00-{'a' * 32}-{'b' * 16}-01"
"""The context of the step that starts the second query."""


def main(folder: Path) -> None:
    """Runs two batches of records, of which every second one has a context; the first of all has a hostile one."""
    spark = hard.started(folder)
    options = {"rowsPerBatch": ROWS, "numPartitions": 2, "startTimestamp": 0}
    numbers = spark.readStream.format("rate-micro-batch").options(**options).load()
    text = F.when(F.col("value") == 0, "x" * 55).when(F.expr("value % 2 = 0"), F.lower(F.expr(PRODUCER)))
    header = F.struct(F.lit(TRACEPARENT).alias("key"), text.cast("binary").alias("value"))
    given = {
        "key": F.col("value").cast("string").cast("binary"),
        "headers": F.when(text.isNotNull(), F.array(header)),
        "topic": F.lit("numbers"),
        "partition": F.lit(0),
        "offset": F.col("value"),
        "timestamp": F.col("timestamp"),
    }
    empty = F.lit(None)
    records = numbers.select(*(given.get(each.name, empty).cast(each.dataType).alias(each.name) for each in RECORD))

    def send(batch: DataFrame, batch_id: int) -> None:
        own = tracing.traceparent_of_batch(batch.sparkSession, batch_id)
        sent = tracing.with_traceparent(batch, own).select(F.lit(batch_id).alias("batch"), "headers")
        sent.write.mode("append").parquet(str(folder / "sent"))

    writer = tracing.producers(records).writeStream.queryName("linked").foreachBatch(send)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    while not (query.lastProgress and query.lastProgress["batchId"] >= BATCHES):
        query.awaitTermination(1)
    query.stop()
    with job_properties.step_properties(spark, "copy", traceparent=STEP, trace_id=None):
        run_without_jobs(numbers, folder)
    session.stop(spark)


def run_without_jobs(numbers: DataFrame, folder: Path) -> None:
    """Each batch is an SQL execution without a job."""
    writer = numbers.writeStream.queryName("idle").foreachBatch(lambda _batch, _number: None)
    query = writer.option("checkpointLocation", str(folder / "idle")).start()
    while not query.lastProgress:
        query.awaitTermination(1)
    query.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
