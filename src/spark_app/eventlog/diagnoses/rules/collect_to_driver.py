"""Rows that the driver collects, after which no task runs for long."""

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.collected_rows import Collected, collected
from spark_app.eventlog.diagnoses.rule import MIB, Limit, rule
from spark_app.eventlog.diagnoses.stage import stage_name
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.formatting import duration, size


@rule(
    limits={
        "collected_bytes": Limit(
            100 * MIB, "Collected rows: bytes of the results of an action's tasks, at least.", ge=1
        )
    }
)
def collect_to_driver(app: Application, limits: Thresholds) -> list[Finding]:
    """Rows that the driver collects, after which no task runs for long.

    An info, because the log does not say what the driver does meanwhile: in a notebook its user may be thinking.

    Evidence: the bytes of the results of tasks, the time until the next query or job, and the line that collects.
    Why: all executors wait while one thread works with the rows, and the driver needs memory for them.
    Change: filter, join and aggregate with Spark before `collect` or `toPandas`; write the rows with Spark
        (`df.write`), or use `mapInPandas`, `applyInPandas` or `foreachPartition`, which run in tasks. Of
        a `toPandas` without Arrow, first `spark.sql.execution.arrow.pyspark.enabled=true`.
    Threshold: {collected_bytes} of one action (project: a tenth of the default of `spark.driver.maxResultSize`).
    Cost: the time from the end of the job to the next query or job, or to the end of the application: at most what the
        driver needs for the rows. The time in which it fetches them while tasks run is no part of it. The rule ignores
        streaming applications.
    """
    return [_finding(app, each) for each in collected(app, limits) if each.after.length_ms]


def _finding(app: Application, rows: Collected) -> Finding:
    info, ms = rows.stage.info, rows.after.length_ms
    name = stage_name(app, info, rows.stage.properties)
    return Finding(
        "collect_to_driver",
        "info",
        f"{name[:1].upper()}{name[1:]}: the driver collects {size(rows.bytes)}, and then no task runs for "
        f"{duration(ms)}",
        settings_advice.use_arrow(app, app.query_of(rows.job))
        + "Do with Spark what the program does with these rows: filter, join and aggregate before collect() or "
        "toPandas(), write them with df.write, or use mapInPandas, applyInPandas or foreachPartition, which run in "
        "tasks.",
        {"collected_bytes": rows.bytes, "driver_ms": ms},
        cost_ms=ms,
        stage=(info.id, info.attempt),
        query=rows.job.query,
        cause=info.name,
    )
