"""What Spark did for applications, ours and others', as their event logs tell it: stage groups, skew, spill, findings.

Names of stage groups are those of call sites and steps; ids of applications, stages and tasks are in the traces.
"""

from typing import Final

from app.telemetry import names, spark_names
from app.telemetry.names import Metric
from app.telemetry.prometheus_names import label
from grafana import links
from grafana.board import APPLICATIONS, Board, Row
from grafana.look import NONE_IS_GOOD, Column, Look
from grafana.panels import Panel, Query, bars, figure, lines, points, ranking, rows
from grafana.queries import INTERVAL, OF_APPLICATION, RANGE, added, grown, largest, last, legend, mean

ONWARD: Final = (links.TRACES_OF_APPLICATION, links.CLUSTER)
GROUP: Final = (names.APPLICATION, spark_names.STAGE_GROUP)
SEVERITIES: Final = {"warning": "orange", "info": "blue"}


def board() -> Board:
    """Findings first, then where time and bytes went, by stage group."""
    return Board(
        "spark-performance",
        "spark",
        "Spark performance",
        "What applications spent their time on, stage group by stage group, and what diagnoses found.",
        (
            Row("Findings", (_found(), _failed(), _lost(), _findings(), _table())),
            Row("Where the time goes", (_groups(), _python(), _slowest(), _durations(), _shares())),
            Row("Cores", (_tasks(), _executors(), _delay(), _skew())),
            Row("Bytes", (_moved(), _shuffle(), _spill(), _caches())),
        ),
        by=APPLICATIONS,
        since="now-24h",
    )


def _grown(metric: Metric, window: str, *by: names.Attribute, part: str = "") -> str:
    return added(grown(metric, window, OF_APPLICATION, part=part), *by)


def _found() -> Panel:
    text = "Conclusions of diagnoses within the time range, by how bad they are."
    query = Query(_grown(spark_names.FINDINGS, RANGE, spark_names.SEVERITY), legend(spark_names.SEVERITY))
    return figure("Findings", Look(text, "none", ONWARD, series=SEVERITIES), query).sized(8, 4)


def _failed() -> Panel:
    text = "What failed within the time range, whether it was tried again or not. Alert: SparkRetries."
    kinds = (
        (spark_names.TASKS_FAILED_COUNT, "tasks"),
        (spark_names.STAGES_FAILED, "stages"),
        (spark_names.JOBS_FAILED, "jobs"),
    )
    queries = [Query(_grown(metric, RANGE), what) for metric, what in kinds]
    return figure("Failed", Look(text, "none", ONWARD, NONE_IS_GOOD), *queries).sized(8, 4)


def _lost() -> Panel:
    text = "Executors that went though nobody had sent them away, in the time range, by why. Alert: SparkExecutorsLost."
    query = Query(_grown(spark_names.EXECUTORS_LOST, RANGE, spark_names.LOSS), legend(spark_names.LOSS))
    return figure("Executors lost", Look(text, "none", ONWARD, NONE_IS_GOOD), query).sized(8, 4)


def _findings() -> Panel:
    text = "Findings by rule; docs/diagnoses.md tells of each. Alerts: SparkPartitionSkew, SparkSpill, SparkSmallFiles."
    by = (names.APPLICATION, spark_names.RULE)
    return bars(
        "Findings by rule", Look(text, "none", ONWARD), Query(_grown(spark_names.FINDINGS, INTERVAL, *by), legend(*by))
    )


def _table() -> Panel:
    text = "What was found within the time range. The report of a run has the numbers, and what to change."
    columns = (
        Column(label(names.APPLICATION), "Application", links=(links.TRACES_OF_APPLICATION_CELL,)),
        Column(label(spark_names.RULE), "Rule"),
        Column(
            label(spark_names.SEVERITY), "Severity", texts={"warning": ("warning", "orange"), "info": ("info", "blue")}
        ),
        Column("Value", "Findings"),
    )
    found = _grown(spark_names.FINDINGS, RANGE, names.APPLICATION, spark_names.RULE, spark_names.SEVERITY)
    return rows("What was found", Look(text, "none", (links.ALERTS,)), columns, Query(f"{found} > 0")).sized(12, 8)


def _groups() -> Panel:
    text = "Time of tasks at work within the time range, by stage group: where cores were spent."
    query = Query(f"topk(15, {_grown(spark_names.TASK_RUN_TIME, RANGE, *GROUP, part='_sum')})", legend(*GROUP))
    return ranking("Task time by stage group", Look(text, "s", ONWARD), query)


def _python() -> Panel:
    text = "Time of tasks in Python workers within the time range, of queries, by stage group, if Spark (4.0 on) tells."
    query = Query(f"topk(15, {_grown(spark_names.STAGE_PYTHON_TIME, RANGE, *GROUP, part='_sum')})", legend(*GROUP))
    return ranking("Time in Python by stage group", Look(text, "s", ONWARD), query)


def _slowest() -> Panel:
    text = "95 % of the tasks within the time range ended within this time, as far as buckets tell, by stage group."
    buckets = _grown(spark_names.TASK_DURATION, RANGE, *GROUP, part="_bucket").replace(" by (", " by (le, ", 1)
    query = Query(f"topk(15, histogram_quantile(0.95, {buckets}))", legend(*GROUP))
    return ranking("Slow tasks by stage group", Look(text, "s", ONWARD), query)


def _durations() -> Panel:
    text = "95 % of the tasks ended within this time, as far as buckets tell. A diamond leads to the trace of a stage."
    buckets = _grown(spark_names.TASK_DURATION, INTERVAL, names.APPLICATION, part="_bucket")
    quantile = f"histogram_quantile(0.95, {buckets.replace(' by (', ' by (le, ', 1)})"
    query = Query(quantile, legend(names.APPLICATION), has_exemplars=True)
    return points("Tasks and their stages", Look(text, "s", ONWARD, interval="1m"), query)


def _shares() -> Panel:
    text = "Share of the tasks' time that was spent on the processor, on garbage collection, and on waiting to be run."
    run = f"({_grown(spark_names.TASK_DURATION, RANGE, names.APPLICATION, part='_sum')} > 0)"
    parts = (
        (spark_names.TASK_CPU_TIME, "processor"),
        (spark_names.TASK_GC_TIME, "collecting garbage"),
        (spark_names.TASK_DELAY, "waiting"),
    )
    queries = [
        Query(f"{_grown(metric, RANGE, names.APPLICATION, part='_sum')} / {run}", f"{legend(names.APPLICATION)} {what}")
        for metric, what in parts
    ]
    return ranking("What tasks did with their time", Look(text, "percentunit", ONWARD, maximum=1), *queries)


def _tasks() -> Panel:
    text = "Tasks at work beside the cores that an application holds, as the bridge saw them last. Below: idle cores."
    kinds = ((spark_names.TASKS_ACTIVE, "tasks"), (spark_names.CORES_ACTIVE, "cores"))
    queries = [
        Query(largest(last(metric, INTERVAL, OF_APPLICATION), names.APPLICATION), f"{legend(names.APPLICATION)} {what}")
        for metric, what in kinds
    ]
    return lines("Cores busy", Look(text, "none", ONWARD, interval="1m"), *queries)


def _executors() -> Panel:
    text = "Executors that are there, as the bridge saw it last, and those that came within each interval."
    there = largest(last(spark_names.EXECUTORS_ACTIVE, INTERVAL, OF_APPLICATION), names.APPLICATION)
    come = _grown(spark_names.EXECUTORS_ADDED, INTERVAL, names.APPLICATION)
    return lines(
        "Executors by application",
        Look(text, "none", ONWARD, interval="1m"),
        Query(there, f"{legend(names.APPLICATION)} there"),
        Query(come, f"{legend(names.APPLICATION)} come"),
    )


def _delay() -> Panel:
    text = "How long a task waited on average between being launched and working, and after it. Much of it: tiny tasks."
    query = Query(
        mean(spark_names.TASK_DELAY, INTERVAL, names.APPLICATION, where=OF_APPLICATION), legend(names.APPLICATION)
    )
    return points("Delay of tasks", Look(text, "s", ONWARD, interval="1m"), query)


def _skew() -> Panel:
    text = (
        "How many times longer than half of the tasks the slowest hundredth took, as far as buckets tell: other cores "
        "wait for them. Alert: SparkPartitionSkew."
    )
    buckets = _grown(spark_names.TASK_DURATION, RANGE, *GROUP, part="_bucket").replace(" by (", " by (le, ", 1)
    times = f"histogram_quantile(0.99, {buckets}) / histogram_quantile(0.5, {buckets})"
    return ranking("Skew by stage group", Look(text, "none", ONWARD), Query(f"topk(15, {times})", legend(*GROUP)))


def _moved() -> Panel:
    text = "Bytes that tasks read of files and tables, and wrote to them."
    return _bytes("Input and output", text, (spark_names.TASK_INPUT, "read"), (spark_names.TASK_OUTPUT, "written"))


def _shuffle() -> Panel:
    text = "Bytes that stages read of and left for each other."
    return _bytes("Shuffle", text, (spark_names.TASK_SHUFFLE_READ, "read"), (spark_names.TASK_SHUFFLE_WRITE, "written"))


def _spill() -> Panel:
    text = "Bytes that did not fit into memory and went to disk; nothing is best. Alert: SparkSpill."
    query = Query(f"topk(15, {_grown(spark_names.TASK_SPILL, RANGE, *GROUP, part='_sum')})", legend(*GROUP))
    return ranking("Spill by stage group", Look(text, "bytes", ONWARD), query)


def _caches() -> Panel:
    text = "Memory of executors that cached blocks take, by their last reports, which tasks of 10 s and more make."
    stored = largest(last(spark_names.STORAGE, INTERVAL, OF_APPLICATION), names.APPLICATION)
    return lines("Caches", Look(text, "bytes", ONWARD, interval="1m"), Query(stored, legend(names.APPLICATION)))


def _bytes(title: str, text: str, *of: tuple[Metric, str]) -> Panel:
    queries = [
        Query(_grown(metric, INTERVAL, names.APPLICATION, part="_sum"), f"{legend(names.APPLICATION)} {what}")
        for metric, what in of
    ]
    return bars(title, Look(text, "bytes", ONWARD), *queries)
