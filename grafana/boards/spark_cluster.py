"""The cluster, from the metrics of its master and its workers (prometheus/scrape/spark.yml).

Tasks and the heaps of executors are on *Spark performance*: Prometheus scrapes no drivers.
"""

from grafana import links
from grafana.board import Board, Row
from grafana.look import FULL_IS_BAD, NONE_IS_GOOD, ONE_IS_GOOD, UP, Look, Texts
from grafana.panels import Panel, Query, figure, lines, lines_of_log, states
from grafana.queries import share

DAEMON = (links.DAEMONS,)
WORK = (links.DAEMONS, links.EXECUTORS, links.ALL_TRACES)
MASTER = 'job="spark-master"'
WORKERS = 'job="spark-worker"'
BOTH = 'job=~"spark-master|spark-worker"'
EACH = "sum by (job, instance)"
LEADS: Texts = {"0": ("no workers", "text"), "1": ("leads", "green")}
APPLICATIONS = 'job="spark-applications"'
_GROWN = f"delta(metrics_application_runtime_ms_Number{{{APPLICATIONS}}}[$__rate_interval]) > 0"
RUNNING = f"and on (application, started_ms) ({_GROWN})"
"""The master keeps reporting the cores of an application that has ended; only its run time stops growing."""


def board() -> Board:
    """Master, workers, applications; cores, memory, heap and garbage collection."""
    return Board(
        "spark-cluster",
        "spark",
        "Spark cluster",
        "Applications, cores and memory in use, and the health of master and workers.",
        (
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
            Look("Whether each master answers. Alert: SparkMasterDown.", "none", DAEMON, ONE_IS_GOOD, texts=UP),
            Query(f"min(up{{{MASTER}}})"),
        ),
        figure(
            "Workers alive",
            Look(
                "Workers that the master considers alive. Alerts: SparkWorkerDown, SparkNoWorkers.",
                "none",
                DAEMON,
                ONE_IS_GOOD,
            ),
            Query(f"sum(metrics_master_aliveWorkers_Number{{{MASTER}}})"),
        ),
        figure(
            "Workers lost",
            Look(
                "Registered workers that no longer send heartbeats to the master. It forgets them after a while.",
                "none",
                DAEMON,
                NONE_IS_GOOD,
            ),
            Query(
                f"sum(metrics_master_workers_Number{{{MASTER}}}) - sum(metrics_master_aliveWorkers_Number{{{MASTER}}})"
            ),
        ),
        figure(
            "Applications waiting",
            Look("Applications that have no cores. Alert: SparkApplicationWaiting.", "none", WORK, NONE_IS_GOOD),
            Query(f"sum(metrics_master_waitingApps_Number{{{MASTER}}})"),
        ),
        figure(
            "Cores in use",
            Look("Share of the workers' cores that executors use.", "percentunit", WORK, FULL_IS_BAD, maximum=1),
            Query(share("metrics_worker_coresUsed_Number", "metrics_worker_coresFree_Number", WORKERS)),
        ),
        figure(
            "Memory in use",
            Look(
                "Share of the workers' memory that executors use.",
                "percentunit",
                WORK,
                FULL_IS_BAD,
                maximum=1,
            ),
            Query(share("metrics_worker_memUsed_MB_Number", "metrics_worker_memFree_MB_Number", WORKERS)),
        ),
    )


def _applications() -> Panel:
    text = "Applications that are registered with the master, and those of them that have no cores yet."
    return lines(
        "Applications",
        Look(text, "none", WORK),
        Query(f"sum(metrics_master_apps_Number{{{MASTER}}})", "registered"),
        Query(f"sum(metrics_master_waitingApps_Number{{{MASTER}}})", "waiting"),
    ).sized(8, 8)


def _cores_of_applications() -> Panel:
    text = "Cores by application. If one uses all of them, the next one waits. Empty while nothing runs."
    query = Query(
        f"sum by (application) (metrics_application_cores_Number{{{APPLICATIONS}}} {RUNNING})", "{{application}}"
    )
    return lines("Cores by application", Look(text, "none", WORK), query, is_stacked=True).sized(8, 8)


def _ages() -> Panel:
    text = "How long each application has been running; close notebooks that nobody uses. Empty while nothing runs."
    query = Query(
        f"max by (application) (metrics_application_runtime_ms_Number{{{APPLICATIONS}}} {RUNNING})", "{{application}}"
    )
    return lines("Run time by application", Look(text, "ms", WORK), query).sized(8, 8)


def _cores() -> Panel:
    query = Query(f"sum by (instance) (metrics_worker_coresUsed_Number{{{WORKERS}}})", "{{instance}}")
    return lines(
        "Cores in use by worker", Look("Cores that executors use, by worker.", "none", WORK), query, is_stacked=True
    )


def _memory() -> Panel:
    query = Query(f"sum by (instance) (metrics_worker_memUsed_MB_Number{{{WORKERS}}})", "{{instance}}")
    return lines(
        "Memory in use by worker",
        Look("Memory that is allocated to executors, by worker.", "mbytes", WORK),
        query,
        is_stacked=True,
    )


def _executors() -> Panel:
    query = Query(f"sum by (instance) (metrics_worker_executors_Number{{{WORKERS}}})", "{{instance}}")
    return lines(
        "Executors",
        Look("Executors by worker. Check a worker without executors if another one is full.", "none", WORK),
        query,
    )


def _free() -> Panel:
    text = "Free cores by worker: what the next application gets at once."
    query = Query(f"sum by (instance) (metrics_worker_coresFree_Number{{{WORKERS}}})", "{{instance}}")
    return lines("Cores free", Look(text, "none", WORK), query, is_stacked=True)


def _up() -> Panel:
    text = "Whether Prometheus could scrape the master, its applications and the workers."
    query = Query('min by (job, instance) (up{job=~"spark-.+"})', "{{job}} {{instance}}")
    return states("Up", Look(text, "none", DAEMON, texts=UP), query).sized(24, 6)


def _leads() -> Panel:
    text = "The master that has the workers. With two masters, the other waits until ZooKeeper makes it lead."
    query = Query(f"sum by (instance) (metrics_master_aliveWorkers_Number{{{MASTER}}}) > bool 0", "{{instance}}")
    return states("Leading master", Look(text, "none", DAEMON, texts=LEADS), query).sized(24, 4)


def _heap() -> Panel:
    query = Query(f"{EACH} (metrics_jvm_heap_used_Number{{{BOTH}}})", "{{job}} {{instance}}")
    return lines("Heap in use", Look("Heap of master and workers (not of executors).", "bytes", DAEMON), query)


def _heap_share() -> Panel:
    text = "Used share of the maximum heap of master and workers. A sawtooth is normal, unless it stays near the top."
    query = Query(f"max by (job, instance) (metrics_jvm_heap_usage_Number{{{BOTH}}})", "{{job}} {{instance}}")
    return lines("Share of the heap", Look(text, "percentunit", DAEMON, maximum=1), query)


def _pauses() -> Panel:
    text = "Share of time that the daemons spend in garbage collection. Alert: SparkGarbageCollection, above 10 %."
    query = Query(
        f"{EACH} (rate(metrics_jvm_gc_time_Number{{{BOTH}}}[$__rate_interval])) / 1000", "{{job}} {{instance}}"
    )
    return lines("Time in garbage collection", Look(text, "percentunit", DAEMON), query)


def _collections() -> Panel:
    text = "Garbage collections of the daemons, by collector. Many of the old generation: the heap is too small."
    each = f"sum by (job, instance, gc) (rate(metrics_jvm_gc_count_Number{{{BOTH}}}[$__rate_interval]))"
    return lines("Garbage collections", Look(text, "ops", DAEMON), Query(each, "{{job}} {{instance}} {{gc}}"))


def _logs() -> Panel:
    text = "Log lines of master, workers and executors. Those of executors have the trace id of their step."
    lucene = "resource.attributes.service.name:(spark\\-master OR spark\\-worker* OR spark\\-executor)"
    return lines_of_log("Log lines of the cluster", Look(text, "none", (links.DAEMONS, links.EXECUTORS)), lucene)
