"""Spark applications, from their event logs: stage groups, skew, spill, findings.

A stage group is named after its call site or step; ids of applications, stages and tasks are in the traces.
"""

from typing import Final

from grafana import links
from grafana.board import APPLICATIONS, NAMESPACES, Board, Row
from grafana.look import NONE_IS_GOOD, Column, Look
from grafana.panels import Panel, Query, bars, figure, lines, points, ranking, rows
from grafana.queries import INTERVAL, OF_APPLICATION, RANGE, added, grown, largest, last, legend
from spark_app.telemetry import names, spark_names
from spark_app.telemetry.names import Metric
from spark_app.telemetry.prometheus_names import label

ONWARD: Final = (links.TRACES_OF_APPLICATION, links.CLUSTER)
GROUP: Final = (names.APPLICATION, spark_names.STAGE_GROUP)


def board() -> Board:
    """Findings first, then time and bytes by stage group."""
    return Board(
        "spark-performance",
        "spark",
        "Spark performance",
        "Where applications spend their time, by stage group, and the findings of the diagnoses.",
        (
            Row("Findings", (_found(), _failed(), _lost(), _findings(), _table())),
            Row("Where the time goes", (_groups(), _python(), _slowest(), _durations(), _shares())),
            Row("Cores", (_tasks(), _executors(), _delay(), _skew())),
            Row("Bytes", (_moved(), _shuffle(), _spill(), _caches())),
        ),
        by=(NAMESPACES, APPLICATIONS),
        since="now-24h",
    )


def _grown(metric: Metric, window: str, *by: names.Attribute, part: str = "") -> str:
    return added(grown(metric, window, OF_APPLICATION, part=part), *by)


def _found() -> Panel:
    text = "Findings of the diagnoses within the time range, by severity."
    query = Query(_grown(spark_names.FINDINGS, RANGE, spark_names.SEVERITY), legend(spark_names.SEVERITY))
    return figure("Findings", Look(text, "none", ONWARD, series=("warning", "info")), query).sized(8, 4)


def _failed() -> Panel:
    text = "Failures within the time range, including those that a retry resolved. Alert: SparkRetries."
    kinds = (
        (spark_names.TASKS_FAILED_COUNT, "tasks"),
        (spark_names.STAGES_FAILED, "stages"),
        (spark_names.JOBS_FAILED, "jobs"),
    )
    queries = [Query(_grown(metric, RANGE), what) for metric, what in kinds]
    return figure("Failed", Look(text, "none", ONWARD, NONE_IS_GOOD), *queries).sized(8, 4)


def _lost() -> Panel:
    text = "Executors lost unexpectedly within the time range, by reason. Alert: SparkExecutorsLost."
    query = Query(_grown(spark_names.EXECUTORS_LOST, RANGE, spark_names.LOSS), legend(spark_names.LOSS))
    return figure("Executors lost", Look(text, "none", ONWARD, NONE_IS_GOOD), query).sized(8, 4)


def _findings() -> Panel:
    text = (
        "Findings by rule; docs/diagnoses.md explains each. Alerts: SparkPartitionSkew, SparkSpill, SparkSmallFiles, "
        "SparkStreamBehind."
    )
    by = (names.APPLICATION, spark_names.RULE)
    return bars(
        "Findings by rule", Look(text, "none", ONWARD), Query(_grown(spark_names.FINDINGS, INTERVAL, *by), legend(*by))
    )


def _table() -> Panel:
    text = "Findings within the time range. The report of a run has the numbers and what to change."
    columns = (
        Column(label(names.APPLICATION), "Application", links=(links.TRACES_OF_APPLICATION_CELL,)),
        Column(label(spark_names.RULE), "Rule"),
        Column(
            label(spark_names.SEVERITY), "Severity", texts={"warning": ("warning", "orange"), "info": ("info", "blue")}
        ),
        Column("Value", "Findings"),
    )
    look = Look(text, "none", (links.ALERTS,))
    counts = _grown(spark_names.FINDINGS, RANGE, names.APPLICATION, spark_names.RULE, spark_names.SEVERITY)
    return rows("Findings by application", look, columns, Query(f"{counts} > 0")).sized(12, 8)


def _groups() -> Panel:
    text = "Run time of tasks within the time range, by stage group: where cores were used."
    query = Query(f"topk(15, {_grown(spark_names.TASK_RUN_TIME, RANGE, *GROUP)})", legend(*GROUP))
    return ranking("Task time by stage group", Look(text, "s", ONWARD), query)


def _python() -> Panel:
    text = "Time that tasks of queries spent in Python workers, by stage group. Needs Spark 4.0 or newer."
    query = Query(f"topk(15, {_grown(spark_names.STAGE_PYTHON_TIME, RANGE, *GROUP)})", legend(*GROUP))
    return ranking("Time in Python by stage group", Look(text, "s", ONWARD), query)


def _slowest() -> Panel:
    text = "95th percentile of the duration of tasks within the time range, estimated from buckets, by stage group."
    buckets = _grown(spark_names.TASK_DURATION, RANGE, *GROUP, part="_bucket").replace(" by (", " by (le, ", 1)
    query = Query(f"topk(15, histogram_quantile(0.95, {buckets}))", legend(*GROUP))
    return ranking("Slow tasks by stage group", Look(text, "s", ONWARD), query)


def _durations() -> Panel:
    text = "95th percentile of the duration of tasks, estimated from buckets. A diamond links to the trace of a stage."
    buckets = _grown(spark_names.TASK_DURATION, INTERVAL, names.APPLICATION, part="_bucket")
    quantile = f"histogram_quantile(0.95, {buckets.replace(' by (', ' by (le, ', 1)})"
    query = Query(quantile, legend(names.APPLICATION), has_exemplars=True)
    return points("Tasks and their stages", Look(text, "s", ONWARD, interval="1m"), query)


def _shares() -> Panel:
    text = "Share of the duration of tasks spent on the processor, in garbage collection, and in scheduler delay."
    run = f"({_grown(spark_names.TASK_DURATION, RANGE, names.APPLICATION, part='_sum')} > 0)"
    parts = (
        (spark_names.TASK_CPU_TIME, "processor"),
        (spark_names.TASK_GC_TIME, "garbage collection"),
        (spark_names.TASK_DELAY, "scheduler delay"),
    )
    queries = [
        Query(f"{_grown(metric, RANGE, names.APPLICATION)} / {run}", f"{legend(names.APPLICATION)} {what}")
        for metric, what in parts
    ]
    return ranking("Where tasks spend their time", Look(text, "percentunit", ONWARD, maximum=1), *queries)


def _tasks() -> Panel:
    text = "Running tasks and the cores of each application, as the bridge last saw them. The gap is idle cores."
    kinds = ((spark_names.TASKS_ACTIVE, "tasks"), (spark_names.CORES_ACTIVE, "cores"))
    queries = [
        Query(largest(last(metric, INTERVAL, OF_APPLICATION), names.APPLICATION), f"{legend(names.APPLICATION)} {what}")
        for metric, what in kinds
    ]
    return lines("Cores busy", Look(text, "none", ONWARD, interval="1m"), *queries)


def _executors() -> Panel:
    text = "Executors of each application, as the bridge last saw them, and executors added within each interval."
    active = largest(last(spark_names.EXECUTORS_ACTIVE, INTERVAL, OF_APPLICATION), names.APPLICATION)
    new = _grown(spark_names.EXECUTORS_ADDED, INTERVAL, names.APPLICATION)
    return lines(
        "Executors by application",
        Look(text, "none", ONWARD, interval="1m"),
        Query(active, f"{legend(names.APPLICATION)} active"),
        Query(new, f"{legend(names.APPLICATION)} added"),
    )


def _delay() -> Panel:
    text = "Scheduler delay per ended task: time between launch and run, and after it. Long delays point to tiny tasks."
    ended = _grown(spark_names.TASK_DURATION, INTERVAL, names.APPLICATION, part="_count")
    delay = f"{_grown(spark_names.TASK_DELAY, INTERVAL, names.APPLICATION)} / ({ended} > 0)"
    look = Look(text, "s", ONWARD, interval="1m")
    return points("Scheduler delay of tasks", look, Query(delay, legend(names.APPLICATION)))


def _skew() -> Panel:
    text = (
        "99th percentile of the duration of tasks divided by the median, estimated from buckets: the other cores wait "
        "for the slow ones. Alert: SparkPartitionSkew."
    )
    buckets = _grown(spark_names.TASK_DURATION, RANGE, *GROUP, part="_bucket").replace(" by (", " by (le, ", 1)
    times = f"histogram_quantile(0.99, {buckets}) / histogram_quantile(0.5, {buckets})"
    return ranking("Skew by stage group", Look(text, "none", ONWARD), Query(f"topk(15, {times})", legend(*GROUP)))


def _moved() -> Panel:
    text = "Bytes that tasks read from files and tables and wrote to them."
    return _bytes("Input and output", text, (spark_names.TASK_INPUT, "read"), (spark_names.TASK_OUTPUT, "written"))


def _shuffle() -> Panel:
    text = "Shuffle bytes that stages read and wrote."
    return _bytes("Shuffle", text, (spark_names.TASK_SHUFFLE_READ, "read"), (spark_names.TASK_SHUFFLE_WRITE, "written"))


def _spill() -> Panel:
    text = "Bytes that did not fit into memory and spilled to disk; 0 is best. Alert: SparkSpill."
    query = Query(f"topk(15, {_grown(spark_names.TASK_SPILL, RANGE, *GROUP)})", legend(*GROUP))
    return ranking("Spill by stage group", Look(text, "bytes", ONWARD), query)


def _caches() -> Panel:
    text = "Executor memory used by cached blocks, from the last heartbeats; only tasks of 10 s and more send them."
    stored = largest(last(spark_names.STORAGE, INTERVAL, OF_APPLICATION), names.APPLICATION)
    return lines("Caches", Look(text, "bytes", ONWARD, interval="1m"), Query(stored, legend(names.APPLICATION)))


def _bytes(title: str, text: str, *of: tuple[Metric, str]) -> Panel:
    queries = [
        Query(_grown(metric, INTERVAL, names.APPLICATION), f"{legend(names.APPLICATION)} {what}") for metric, what in of
    ]
    return bars(title, Look(text, "bytes", ONWARD), *queries)
