"""The cluster, from the metrics of its master and its workers (prometheus/scrape/spark.yml).

Tasks and the heaps of executors are on *Spark performance*: Prometheus scrapes no drivers.
"""

from grafana import links
from grafana.board import Board, Row
from grafana.look import NONE_IS_GOOD, ONE_IS_GOOD, UNKNOWN, UP, Look, Texts
from grafana.panels import Panel, Query, figure, lines, lines_of_log, states, top
from grafana.queries import level, share
from grafana.verdict import verdict

DAEMON = (links.DAEMONS,)
WORK = (links.DAEMONS, links.EXECUTORS, links.ALL_TRACES)
MASTER = 'job="spark-master"'
WORKERS = 'job="spark-worker"'
BOTH = 'job=~"spark-master|spark-worker"'
EACH = "sum by (job, instance)"
LEADS: Texts = {"0": ("no workers", "text"), "1": ("leads", "green")}
APPLICATIONS = 'job="spark-applications"'
_GROWN = f"delta(metrics_application_runtime_ms_Number{{{APPLICATIONS}}}[$__rate_interval]) > 0"
NOTHING_RUNS = "No application ran in this time range, if Telemetry arrives"
RUNNING = f"and on (application, started_ms) ({_GROWN})"
"""The master keeps reporting the cores of an application that has ended; only its run time stops growing."""


def board() -> Board:
    """Master, workers, applications; cores, memory, heap and garbage collection."""
    return Board(
        "spark-cluster",
        "spark",
        "Spark cluster: is it up, and does anything wait for cores?",
        "Applications, cores and memory in use, and the health of master and workers.",
        (
            Row("Is it well, since when, where to look", verdict("spark-cluster")),
            Row("Now", _now()),
            Row("Applications", (_applications(), _cores_of_applications(), _ages())),
            Row("Cores and memory", (_cores(), _memory(), _executors(), _free())),
            Row("Master and workers", (_up(), _leads(), _heap(), _heap_share(), _pauses(), _collections())),
            Row("Logs", (_logs(),)),
        ),
    )


def _now() -> tuple[Panel, ...]:
    return (
        figure(
            "Master",
            Look(
                "Whether each master answers. Alert: SparkMasterDown.",
                "none",
                DAEMON,
                ONE_IS_GOOD,
                texts=UP,
                empty=UNKNOWN,
            ),
            Query(f"min(up{{{MASTER}}})"),
        ),
        figure(
            "Workers alive",
            Look(
                "Workers that the master considers alive. Alerts: SparkWorkerDown, SparkNoWorkers.",
                "none",
                DAEMON,
                ONE_IS_GOOD,
                empty=UNKNOWN,
            ),
            Query(f"sum(metrics_master_aliveWorkers_Number{{{MASTER}}})"),
        ),
        figure(
            "Workers missing",
            Look(
                "Workers that Prometheus knows and that are not alive for the master. Alert: SparkWorkerDown.",
                "locale",
                DAEMON,
                NONE_IS_GOOD,
                empty=UNKNOWN,
            ),
            # The master itself counts workers of before its start as lost, for a quarter of an hour.
            Query(f"clamp_min(count(up{{{WORKERS}}}) - sum(metrics_master_aliveWorkers_Number{{{MASTER}}}), 0)"),
        ),
        figure(
            "Applications waiting",
            Look(
                "Applications that have no cores. Alert: SparkApplicationWaiting.",
                "locale",
                WORK,
                NONE_IS_GOOD,
                empty=UNKNOWN,
            ),
            Query(f"sum(metrics_master_waitingApps_Number{{{MASTER}}})"),
        ),
        figure(
            "Cores in use",
            Look(
                "Share of the workers' cores that executors use. All is no fault, unless an application waits.",
                "percentunit",
                WORK,
                maximum=1,
                empty=UNKNOWN,
            ),
            Query(share("metrics_worker_coresUsed_Number", "metrics_worker_coresFree_Number", WORKERS)),
        ),
        figure(
            "Memory in use",
            Look(
                "Share of the workers' memory that executors use.",
                "percentunit",
                WORK,
                maximum=1,
                empty=UNKNOWN,
            ),
            Query(share("metrics_worker_memUsed_MB_Number", "metrics_worker_memFree_MB_Number", WORKERS)),
        ),
    )


def _applications() -> Panel:
    text = "Applications that are registered with the master, and those of them that have no cores yet."
    return lines(
        "Applications",
        Look(text, "locale", WORK, empty=UNKNOWN),
        Query(f"sum(metrics_master_apps_Number{{{MASTER}}})", "registered"),
        Query(f"sum(metrics_master_waitingApps_Number{{{MASTER}}})", "waiting"),
    ).sized(8, 9)


def _cores_of_applications() -> Panel:
    text = "Cores by application. If one uses all of them, the next one waits."
    cores = f"sum by (application) ({level(f'metrics_application_cores_Number{{{APPLICATIONS}}}')} {RUNNING})"
    look = Look(text, "locale", WORK, empty=NOTHING_RUNS)
    return lines("Cores by application", look, *_of_application(cores), is_stacked=True).sized(8, 9)


def _ages() -> Panel:
    text = "How long each application has been running; close notebooks that nobody uses."
    age = f"max by (application) ({level(f'metrics_application_runtime_ms_Number{{{APPLICATIONS}}}')} {RUNNING})"
    look = Look(text, "ms", WORK, empty=NOTHING_RUNS)
    return lines("Run time by application", look, *_of_application(age, others="max")).sized(8, 9)


def _of_application(expression: str, others: str = "sum") -> list[Query]:
    return top(expression, "{{application}}", "application", others=others)


def _cores() -> Panel:
    look = Look("Cores that executors use, by worker.", "locale", WORK, empty=UNKNOWN)
    return lines("Cores in use by worker", look, *_of_worker("coresUsed"), is_stacked=True)


def _memory() -> Panel:
    look = Look("Memory that is allocated to executors, by worker.", "mbytes", WORK, empty=UNKNOWN)
    return lines("Memory in use by worker", look, *_of_worker("memUsed_MB"), is_stacked=True)


def _executors() -> Panel:
    text = "Executors by worker. Check a worker without executors if another one is full."
    return lines("Executors", Look(text, "locale", WORK, empty=UNKNOWN), *_of_worker("executors"))


def _free() -> Panel:
    text = "Free cores by worker: what the next application gets at once."
    look = Look(text, "locale", WORK, empty=UNKNOWN)
    return lines("Cores free", look, *_of_worker("coresFree"), is_stacked=True)


def _of_worker(what: str) -> list[Query]:
    gauge = f"metrics_worker_{what}_Number{{{WORKERS}}}"
    return top(f"sum by (instance) ({level(gauge)})", "{{instance}}", "instance")


def _up() -> Panel:
    text = "Whether Prometheus could scrape the master, its applications and the workers."
    query = Query('min by (job, instance) (up{job=~"spark-.+"})', "{{job}} {{instance}}")
    return states("Up", Look(text, "none", DAEMON, texts=UP, empty=UNKNOWN), query).sized(24, 6)


def _leads() -> Panel:
    text = "The master that has the workers. With two masters, the other waits until ZooKeeper makes it lead."
    query = Query(f"sum by (instance) (metrics_master_aliveWorkers_Number{{{MASTER}}}) > bool 0", "{{instance}}")
    return states("Leading master", Look(text, "none", DAEMON, texts=LEADS, empty=UNKNOWN), query).sized(24, 4)


def _heap() -> Panel:
    heap = f"{EACH} ({level(f'metrics_jvm_heap_used_Number{{{BOTH}}}')})"
    look = Look("Heap of master and workers (not of executors).", "bytes", DAEMON, empty=UNKNOWN)
    return lines("Heap in use", look, *_of_daemon(heap))


def _heap_share() -> Panel:
    text = "Used share of the maximum heap of master and workers. A sawtooth is normal, unless it stays near the top."
    used = f"max by (job, instance) ({level(f'metrics_jvm_heap_usage_Number{{{BOTH}}}')})"
    look = Look(text, "percentunit", DAEMON, maximum=1, empty=UNKNOWN)
    return lines("Share of the heap", look, *_of_daemon(used))


def _pauses() -> Panel:
    text = "Share of time that the daemons spend in garbage collection. Alert: SparkGarbageCollection, above 10 %."
    paused = f"{EACH} (rate(metrics_jvm_gc_time_Number{{{BOTH}}}[$__rate_interval])) / 1000"
    return lines("Time in garbage collection", Look(text, "percentunit", DAEMON, empty=UNKNOWN), *_of_daemon(paused))


def _collections() -> Panel:
    text = "Garbage collections of the daemons. Many, and little memory that gets free: the heap is too small."
    each = f"{EACH} (rate(metrics_jvm_gc_count_Number{{{BOTH}}}[$__rate_interval]))"
    return lines("Garbage collections", Look(text, "ops", DAEMON, empty=UNKNOWN), *_of_daemon(each))


def _of_daemon(expression: str) -> list[Query]:
    return top(expression, "{{job}} {{instance}}", "job", "instance", others="max")


def _logs() -> Panel:
    text = "Log lines of master, workers and executors. Those of executors have the trace id of their step."
    lucene = "resource.attributes.service.name:(spark\\-master OR spark\\-worker* OR spark\\-executor)"
    return lines_of_log("Log lines of the cluster", Look(text, "none", (links.DAEMONS, links.EXECUTORS)), lucene)
