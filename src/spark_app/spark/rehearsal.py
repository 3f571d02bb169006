"""A day in miniature: `python -m spark_app.spark.rehearsal FOLDER` loads the classes that a daily run needs.

The class-data archive holds what this session has loaded.
"""

import sys
from pathlib import Path
from typing import Final

from pyspark.sql import Observation, functions

from spark_app.settings import load_settings
from spark_app.spark import session

STOP_SECONDS: Final = 300
STATEMENTS: Final = """
    INSERT OVERWRITE DIRECTORY '{folder}/raw' USING json OPTIONS (compression 'gzip')
        SELECT string(id % 900) key, decimal(id) amount, timestamp_seconds(id) at, string(id % 3) kind FROM range(1000);
    CREATE TEMPORARY VIEW latest AS SELECT key, amount, at, kind FROM (
        SELECT *, row_number() OVER (PARTITION BY key ORDER BY at DESC) rank FROM json.`{folder}/raw`) WHERE rank = 1;
    CREATE TABLE delta.`{folder}/days` (key string, amount decimal(12, 2), at timestamp, kind string)
        USING delta PARTITIONED BY (kind);
    MERGE INTO delta.`{folder}/days` days USING latest ON days.key = latest.key AND days.at <= latest.at
        WHEN MATCHED AND days.amount > 0 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
    MERGE INTO delta.`{folder}/days` days USING latest ON days.key = latest.key AND days.at <= latest.at
        WHEN MATCHED AND days.amount > 0 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
    SELECT kind, count(*), sum(days.amount), avg(latest.amount), count(DISTINCT key)
        FROM delta.`{folder}/days` days JOIN latest USING (key, kind) GROUP BY kind;
    DESCRIBE HISTORY delta.`{folder}/days`
    """


def rehearse(folder: Path) -> None:
    """Reads JSON, writes Delta, merges, joins, groups, observes and reads an older version, all in a folder."""
    settings = load_settings().model_copy(update={"home": folder})
    no_fixed_port = {"spark.ui.port": "0"}  # a run beside it keeps its own
    # Daemons and executors run with Java's own collector, so their archive is written with it.
    log_file = folder / "spark.log"
    spark = session.start(settings, name="rehearsal", log_file=log_file, extra=no_fixed_port, collector="")
    for statement in STATEMENTS.format(folder=folder).split(";"):
        spark.sql(statement).collect()
    days = spark.read.schema("key string, amount decimal(12,2), at timestamp, kind string").json(f"{folder}/raw")
    aggregates = [functions.count("*").alias("rows"), functions.stddev("amount").alias("sigma")]
    observed = days.observe(Observation(), *aggregates)
    observed.write.format("delta").mode("overwrite").option("replaceWhere", "kind >= '0'").save(f"{folder}/days")
    spark.read.format("delta").option("versionAsOf", 0).load(f"{folder}/days").limit(5).collect()
    session.stop(spark, patience=STOP_SECONDS)


if __name__ == "__main__":
    rehearse(Path(sys.argv[1]))
