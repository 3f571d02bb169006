"""Spark applications, from their event logs: stage groups, skew, spill, findings.

A stage group is named after its call site or step; ids of applications, stages and tasks are in the traces.
"""

from dataclasses import replace
from typing import Final

from grafana import links
from grafana.board import APPLICATIONS, NAMESPACES, Board, Row
from grafana.look import NONE_IS_GOOD, UNKNOWN, Column, Look
from grafana.panels import Panel, Query, bars, figure, lines, points, ranking, rows, top
from grafana.queries import BRIDGE, INTERVAL, OF_APPLICATION, RANGE, added, grown, known, largest, last, legend
from grafana.verdict import verdict
from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.names import Metric
from spark_app.vocabulary.prometheus_names import label

ONWARD: Final = (links.TRACES_OF_APPLICATION, links.CLUSTER)
NO_TASKS: Final = "No task ended in this time range, if Telemetry arrives"
GROUP: Final = (names.APPLICATION, spark_names.STAGE_GROUP)


def board() -> Board:
    """Findings first, then time and bytes by stage group."""
    return Board(
        "spark-performance",
        "spark",
        "Spark performance: where do applications lose time?",
        "Where applications spend their time, by stage group, and the findings of the diagnoses.",
        (
            Row("Is it well, since when, where to look", verdict("spark-performance")),
            Row("Findings and failures", (_found(), _failed(), _lost(), _table(), _applications())),
            Row("Where the time goes", (_groups(), _skew(), _longest(), _python())),
            Row("Over time", (_findings(), _durations(), _tasks(), _executors(), _delay(), _caches())),
            Row("Bytes", (_spill(), _moved().sized(12, 12), _shuffle())),
        ),
        by=(NAMESPACES, APPLICATIONS),
        since="now-24h",
    )


def _grown(metric: Metric, window: str, *by: names.Attribute, part: str = "") -> str:
    return added(grown(metric, window, OF_APPLICATION, part=part), *by)


def _found() -> Panel:
    text = "Findings of the diagnoses within the time range, by severity."
    query = Query(_grown(spark_names.FINDINGS, RANGE, spark_names.SEVERITY), legend(spark_names.SEVERITY))
    look = Look(text, "locale", ONWARD, series=("warning", "info"), empty="No finding, if Telemetry arrives")
    return figure("Findings", look, query).sized(8, 4)


def _failed() -> Panel:
    text = "Failures within the time range, including those that a retry resolved. Alert: SparkRetries."
    kinds = (
        (spark_names.TASKS_FAILED_COUNT, "tasks"),
        (spark_names.STAGES_FAILED, "stages"),
        (spark_names.JOBS_FAILED, "jobs"),
    )
    queries = [Query(known(_grown(metric, RANGE), BRIDGE), what) for metric, what in kinds]
    return figure("Failed", Look(text, "locale", ONWARD, NONE_IS_GOOD, empty=UNKNOWN), *queries).sized(8, 4)


def _lost() -> Panel:
    text = "Executors lost unexpectedly within the time range. Alert: SparkExecutorsLost."
    look = Look(text, "locale", ONWARD, NONE_IS_GOOD, empty=UNKNOWN)
    return figure("Executors lost", look, Query(known(_grown(spark_names.EXECUTORS_LOST, RANGE), BRIDGE))).sized(8, 4)


def _findings() -> Panel:
    text = (
        "Findings by rule; docs/diagnoses.md explains each. Alerts: SparkPartitionSkew, SparkSpill, SparkSmallFiles, "
        "SparkStreamBehind."
    )
    by = spark_names.RULE
    shown = top(_grown(spark_names.FINDINGS, INTERVAL, by), legend(by), by)
    return bars("Findings by rule", Look(text, "locale", ONWARD), *shown)


def _table() -> Panel:
    text = "Findings within the time range. The report of a run has the numbers and what to change."
    columns = (
        _application(),
        Column(label(spark_names.RULE), "Rule"),
        Column(
            label(spark_names.SEVERITY), "Severity", texts={"warning": ("warning", "orange"), "info": ("info", "blue")}
        ),
        Column("Value", "Findings", "locale", width=90),
    )
    look = Look(text, "none", (links.ALERTS, links.REPORTS), empty="No finding, if Telemetry arrives")
    counts = _grown(spark_names.FINDINGS, RANGE, names.APPLICATION, spark_names.RULE, spark_names.SEVERITY)
    return rows("Findings by application", look, columns, Query(f"sort_desc({counts} > 0)")).sized(12, 9)


def _application() -> Column:
    onward = (
        links.PERFORMANCE_OF_CELL,
        links.TRACES_OF_APPLICATION_CELL,
        links.LOGS_OF_APPLICATION_CELL,
        links.REPORTS,
    )
    return Column(label(names.APPLICATION), "Application", links=onward)


def _applications() -> Panel:
    text = (
        "Each application: the time of its tasks, and the shares of it that they spent on the processor, in garbage "
        "collection, and in scheduler delay."
    )
    columns = (
        _application(),
        Column("Value #A", "Task time", "s", width=100),
        Column("Value #B", "Processor", "percentunit", width=95),
        Column("Value #C", "Collection", "percentunit", width=95),
        Column("Value #D", "Delay", "percentunit", width=80),
        Column("Value #E", "Tasks failed", "locale", width=105, colors=NONE_IS_GOOD),
    )
    by = names.APPLICATION
    run = _grown(spark_names.TASK_DURATION, RANGE, by, part="_sum")
    parts = (spark_names.TASK_CPU_TIME, spark_names.TASK_GC_TIME, spark_names.TASK_DELAY)
    queries = [f"sort_desc({run} > 0)", *(f"{_grown(metric, RANGE, by)} / ({run} > 0)" for metric in parts)]
    queries.append(_grown(spark_names.TASKS_FAILED_COUNT, RANGE, by))
    look = Look(text, "none", (links.CLUSTER, links.REPORTS), empty=NO_TASKS)
    return rows("Applications", look, columns, *map(Query, queries)).sized(12, 9)


def _groups() -> Panel:
    text = "Run time of tasks within the time range, by stage group: where cores were used."
    shown = top(_grown(spark_names.TASK_RUN_TIME, RANGE, *GROUP), legend(*GROUP), *GROUP)
    return ranking("Task time by stage group", Look(text, "s", ONWARD, empty=NO_TASKS), *shown)


def _python() -> Panel:
    text = "Time that tasks of queries spent in Python workers, by stage group. Needs Spark 4.0 or newer."
    shown = top(_grown(spark_names.STAGE_PYTHON_TIME, RANGE, *GROUP), legend(*GROUP), *GROUP)
    look = Look(text, "s", ONWARD, empty="No task ran Python")
    return ranking("Time in Python by stage group", look, *shown)


def _longest() -> Panel:
    text = "The longest task of each stage, added up: so long the stages of a group lasted at least, with any cores."
    shown = top(_grown(spark_names.STAGE_LONGEST_TASK, RANGE, *GROUP), legend(*GROUP), *GROUP)
    return ranking("Longest tasks by stage group", Look(text, "s", ONWARD, empty=NO_TASKS), *shown)


def _durations() -> Panel:
    text = "Mean duration of the tasks that ended. A diamond is a long task and links to the trace of its stage."
    total = _grown(spark_names.TASK_DURATION, INTERVAL, names.APPLICATION, part="_sum")
    # The largest bucket is the count, and has the exemplars.
    buckets = f"max without (le) ({grown(spark_names.TASK_DURATION, INTERVAL, OF_APPLICATION, part='_bucket')})"
    return points(
        "Tasks and their stages",
        Look(text, "s", ONWARD, interval="1m", empty=NO_TASKS),
        *_of_application(f"{total} / ({added(buckets, names.APPLICATION)} > 0)", others="max", has_exemplars=True),
    )


def _tasks() -> Panel:
    text = "Running tasks and cores of all applications, as the bridge last saw them. The gap is idle cores."
    kinds = ((spark_names.TASKS_ACTIVE, "tasks"), (spark_names.CORES_ACTIVE, "cores"))
    queries = [Query(added(_level(metric)), what) for metric, what in kinds]
    return lines("Cores busy", Look(text, "locale", ONWARD, interval="1m", empty=NO_TASKS), *queries)


def _executors() -> Panel:
    text = "Executors of all applications, as the bridge last saw them, and executors added within each interval."
    return lines(
        "Executors of applications",
        Look(text, "locale", ONWARD, interval="1m", empty=NO_TASKS),
        Query(added(_level(spark_names.EXECUTORS_ACTIVE)), "registered"),
        Query(_grown(spark_names.EXECUTORS_ADDED, INTERVAL), "added"),
    )


def _level(metric: Metric) -> str:
    return largest(last(metric, INTERVAL, OF_APPLICATION), names.APPLICATION)


def _delay() -> Panel:
    text = "Scheduler delay per ended task: time between launch and run, and after it. Long delays point to tiny tasks."
    ended = _grown(spark_names.TASK_DURATION, INTERVAL, names.APPLICATION, part="_count")
    delay = f"{_grown(spark_names.TASK_DELAY, INTERVAL, names.APPLICATION)} / ({ended} > 0)"
    look = Look(text, "s", ONWARD, interval="1m", empty=NO_TASKS)
    return points("Scheduler delay of tasks", look, *_of_application(delay, others="max"))


def _of_application(expression: str, *, others: str = "sum", has_exemplars: bool = False) -> list[Query]:
    shown = top(expression, legend(names.APPLICATION), names.APPLICATION, others=others)
    return [replace(query, has_exemplars=has_exemplars) for query in shown]


def _skew() -> Panel:
    text = (
        "The longest task of a stage divided by its median task: how long the other cores wait for one. Of several "
        "stages of a group, the longest tasks of all divided by all medians. Alert: SparkPartitionSkew."
    )
    longest, median = (
        _grown(metric, RANGE, *GROUP) for metric in (spark_names.STAGE_LONGEST_TASK, spark_names.STAGE_MEDIAN_TASK)
    )
    shown = top(f"{longest} / ({median} > 0)", legend(*GROUP), *GROUP, others="max")
    return ranking("Skew by stage group", Look(text, "suffix: times", ONWARD, empty=NO_TASKS), *shown)


def _moved() -> Panel:
    text = "Bytes that tasks read from files and tables and wrote to them."
    return _bytes("Input and output", text, (spark_names.TASK_INPUT, "read"), (spark_names.TASK_OUTPUT, "written"))


def _shuffle() -> Panel:
    text = "Shuffle bytes that stages read and wrote."
    return _bytes("Shuffle", text, (spark_names.TASK_SHUFFLE_READ, "read"), (spark_names.TASK_SHUFFLE_WRITE, "written"))


def _spill() -> Panel:
    text = "Bytes that did not fit into memory and spilled to disk; 0 is best. Alert: SparkSpill."
    shown = top(f"{_grown(spark_names.TASK_SPILL, RANGE, *GROUP)} > 0", legend(*GROUP), *GROUP)
    return ranking("Spill by stage group", Look(text, "bytes", ONWARD, empty="Nothing was spilled"), *shown)


def _caches() -> Panel:
    text = "Executor memory used by cached blocks, from the last heartbeats; only tasks of 10 s and more send them."
    look = Look(text, "bytes", ONWARD, interval="1m", empty="No application reported a cache")
    return lines("Caches", look, *_of_application(_level(spark_names.STORAGE)))


def _bytes(title: str, text: str, *of: tuple[Metric, str]) -> Panel:
    queries = [Query(_grown(metric, INTERVAL), what) for metric, what in of]
    return bars(title, Look(text, "bytes", ONWARD, empty=NO_TASKS), *queries)
