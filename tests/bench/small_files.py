"""Reads of a table after thousands of micro-batches, beside the same table compacted, and its rows written at once.

BENCH_MICRO_BATCHES (10000) makes it shorter for a try; it must be more than 50.
"""

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from spark_app.settings import load_settings
from spark_app.spark import session
from tests.bench.days import without_event_log
from tests.bench.measure import ROUNDS, run

MICRO_BATCHES: Final = int(os.environ.get("BENCH_MICRO_BATCHES", "10000"))
UNCOMPACTED: Final = 49
"""Micro-batches after the last compaction: with one more, the next would be due."""
EVENTS: Final = 100
"""Events of a micro-batch."""
READS_BEFORE: Final = 3
"""Reads that are not counted: Java compiles meanwhile."""


def small_files(scratch: Path) -> list[str]:
    """How long reads take, and of how many files."""
    tables = _tables(scratch)
    settings = load_settings().model_copy(update={"home": scratch})
    spark = session.start(settings, name="bench", log_file=scratch / "bench.jsonl", extra={"spark.ui.enabled": "false"})
    try:
        spark.sql(f"OPTIMIZE delta.`{tables['compacted by hand']}`")
        spark.read.format("delta").load(str(tables["as queries leave it"])).coalesce(1).write.format("delta").save(
            str(tables["written at once"])
        )
        seconds = _read_times(spark, tables)
        files = {name: len(spark.read.format("delta").load(str(path)).inputFiles()) for name, path in tables.items()}
    finally:
        session.stop(spark)
    rows = [f"| {name} | {files[name]:,} | {statistics.median(times):.2f} s |" for name, times in seconds.items()]
    return [
        "| table | files | read |",
        "|---|---|---|",
        *rows,
        "",
        f"`streaming.events` after {MICRO_BATCHES + UNCOMPACTED:,} micro-batches of {EVENTS} events,",
        f"{UNCOMPACTED} of them after its last compaction. A read opens the table anew, with its log, and counts",
        f"all rows by event type; medians of {ROUNDS * 2} reads in turn.",
    ]


def _tables(scratch: Path) -> Mapping[str, Path]:
    """The table that a query has written, a copy of it, and the place of a third."""
    config = without_event_log(scratch / "config")
    file = config / "streaming" / "events.yml"
    file.write_text(file.read_text().replace("files_per_trigger: 1000", "files_per_trigger: 1"))
    topic = scratch / "landing" / "user_events"
    topic.mkdir(parents=True)
    for first, count in ((0, MICRO_BATCHES), (MICRO_BATCHES, UNCOMPACTED)):
        for number in range(first, first + count):
            (topic / f"{number:06}.jsonl").write_text(_lines(number))
        command = [sys.executable, "-m", "spark_app", "streaming", "events", "--available-now", "--config", str(config)]
        run(command, {"SPARK_APP_HOME": str(scratch), "SPARK_APP_STREAM__LANDING": str(scratch / "landing")})
    table = scratch / "data" / "warehouse" / "events"
    copy = shutil.copytree(table, scratch / "copy")
    return {"as queries leave it": table, "compacted by hand": copy, "written at once": scratch / "once"}


def _lines(number: int) -> str:
    """The events of a micro-batch."""
    common = {"event_type": "view", "timestamp": "2024-01-01T12:00:00Z"}
    events = ({"event_id": f"e-{number}-{each}", "user_id": f"c-{each:07}"} | common for each in range(EVENTS))
    return "".join(json.dumps(event) + "\n" for event in events)


def _read_times(spark: SparkSession, tables: Mapping[str, Path]) -> dict[str, list[float]]:
    """Seconds of each read, in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in tables}
    for turn in range(READS_BEFORE + ROUNDS * 2):
        for name, path in tables.items():
            spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
            began = time.monotonic()
            spark.read.format("delta").load(str(path)).groupBy("event_type").count().collect()
            if turn >= READS_BEFORE:
                seconds[name].append(time.monotonic() - began)
    return seconds
