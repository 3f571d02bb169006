"""The cluster, as its master and its workers tell it themselves (prometheus/scrape/spark.yml).

Tasks and executors' heaps are not here: drivers are no targets, as they are gone between jobs.
"""

from grafana import links
from grafana.board import Board, Row
from grafana.look import FULL_IS_BAD, NONE_IS_GOOD, ONE_IS_GOOD, UP, Look
from grafana.panels import Panel, Query, figure, lines, lines_of_log, states
from grafana.queries import share

DAEMON = (links.DAEMONS,)
WORK = (links.DAEMONS, links.EXECUTORS, links.ALL_TRACES)
MASTER = 'job="spark-master"'
WORKERS = 'job="spark-worker"'
BOTH = 'job=~"spark-master|spark-worker"'
EACH = "sum by (job, instance)"
RUNNING = "and on (application, started_ms) (delta(metrics_application_runtime_ms_Number[$__rate_interval]) > 0)"
"""The master goes on telling the cores of an application that has ended; only its age stands still."""


def board() -> Board:
    """Master, workers, applications; cores, memory, heap and garbage collection."""
    return Board(
        "spark-cluster",
        "spark",
        "Spark cluster",
        "Who is there, who waits, what is in use, and whether the daemons are well.",
        (
            Row("Now", _now()),
            Row("Applications", (_applications(), _cores_of_applications(), _ages())),
            Row("Cores and memory", (_cores(), _memory(), _executors(), _free())),
            Row("Master and workers", (_up(), _heap(), _heap_share(), _pauses(), _collections())),
            Row("Logs", (_logs(),)),
        ),
    )


def _now() -> tuple[Panel, ...]:
    return (
        figure(
            "Master",
            Look("Whether the master answers. Alert: SparkMasterDown.", "none", DAEMON, ONE_IS_GOOD, texts=UP),
            Query(f"min(up{{{MASTER}}})"),
        ),
        figure(
            "Workers alive",
            Look(
                "Workers that the master counts on. Alerts: SparkWorkerDown, SparkNoWorkers.",
                "none",
                DAEMON,
                ONE_IS_GOOD,
            ),
            Query(f"sum(metrics_master_aliveWorkers_Number{{{MASTER}}})"),
        ),
        figure(
            "Workers lost",
            Look(
                "Workers that the master knows and does not hear. It forgets them after a while.",
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
            Look("Applications without a core. Alert: SparkApplicationWaiting.", "none", WORK, NONE_IS_GOOD),
            Query(f"sum(metrics_master_waitingApps_Number{{{MASTER}}})"),
        ),
        figure(
            "Cores in use",
            Look("Share of the workers' cores.", "percentunit", WORK, FULL_IS_BAD, maximum=1),
            Query(share("metrics_worker_coresUsed_Number", "metrics_worker_coresFree_Number")),
        ),
        figure(
            "Memory in use",
            Look("Share of the workers' memory for executors.", "percentunit", WORK, FULL_IS_BAD, maximum=1),
            Query(share("metrics_worker_memUsed_MB_Number", "metrics_worker_memFree_MB_Number")),
        ),
    )


def _applications() -> Panel:
    text = "Applications that the master knows as running, and those of them that have no core yet."
    return lines(
        "Applications",
        Look(text, "none", WORK),
        Query(f"sum(metrics_master_apps_Number{{{MASTER}}})", "registered"),
        Query(f"sum(metrics_master_waitingApps_Number{{{MASTER}}})", "waiting"),
    ).sized(8, 8)


def _cores_of_applications() -> Panel:
    text = "Cores by application; one that holds all of them lets the next one wait. Empty while nothing runs."
    query = Query(f"sum by (application) (metrics_application_cores_Number {RUNNING})", "{{application}}")
    return lines("Cores by application", Look(text, "none", WORK), query, is_stacked=True).sized(8, 8)


def _ages() -> Panel:
    text = "For how long each application has run; a notebook that nobody closes only climbs. Empty while nothing runs."
    query = Query(f"max by (application) (metrics_application_runtime_ms_Number {RUNNING})", "{{application}}")
    return lines("Running for", Look(text, "ms", WORK), query).sized(8, 8)


def _cores() -> Panel:
    query = Query(f"sum by (instance) (metrics_worker_coresUsed_Number{{{WORKERS}}})", "{{instance}}")
    return lines(
        "Cores in use by worker", Look("Cores that executors hold, by worker.", "none", WORK), query, is_stacked=True
    )


def _memory() -> Panel:
    query = Query(f"sum by (instance) (metrics_worker_memUsed_MB_Number{{{WORKERS}}})", "{{instance}}")
    return lines(
        "Memory in use by worker",
        Look("Memory that executors were promised, by worker.", "mbytes", WORK),
        query,
        is_stacked=True,
    )


def _executors() -> Panel:
    query = Query(f"sum by (instance) (metrics_worker_executors_Number{{{WORKERS}}})", "{{instance}}")
    return lines(
        "Executors",
        Look("Executors by worker. A worker without any beside one that is full is worth a look.", "none", WORK),
        query,
    )


def _free() -> Panel:
    text = "Cores that nobody holds, by worker: what the next application gets at once."
    query = Query(f"sum by (instance) (metrics_worker_coresFree_Number{{{WORKERS}}})", "{{instance}}")
    return lines("Cores free", Look(text, "none", WORK), query, is_stacked=True)


def _up() -> Panel:
    text = "Whether master, its applications' page and the workers answered Prometheus."
    query = Query('min by (job, instance) (up{job=~"spark-.+"})', "{{job}} {{instance}}")
    return states("Up", Look(text, "none", DAEMON, texts=UP), query).sized(24, 6)


def _heap() -> Panel:
    query = Query(f"{EACH} (metrics_jvm_heap_used_Number{{{BOTH}}})", "{{job}} {{instance}}")
    return lines("Heap in use", Look("Heap of the daemons (not of executors).", "bytes", DAEMON), query)


def _heap_share() -> Panel:
    text = (
        "Heap of the daemons as a share of the largest that it may become. A saw is well; a saw that stays high is not."
    )
    query = Query(f"max by (job, instance) (metrics_jvm_heap_usage_Number{{{BOTH}}})", "{{job}} {{instance}}")
    return lines("Share of the heap", Look(text, "percentunit", DAEMON, maximum=1), query)


def _pauses() -> Panel:
    text = "Share of time that the daemons spend on collecting garbage. Alert: SparkGarbageCollection, above 10 %."
    query = Query(
        f"{EACH} (rate(metrics_jvm_gc_time_Number{{{BOTH}}}[$__rate_interval])) / 1000", "{{job}} {{instance}}"
    )
    return lines("Time in garbage collection", Look(text, "percentunit", DAEMON), query)


def _collections() -> Panel:
    text = "Garbage collections of the daemons, by collector. Many old ones: the heap is too small."
    each = f"sum by (job, instance, gc) (rate(metrics_jvm_gc_count_Number{{{BOTH}}}[$__rate_interval]))"
    return lines("Garbage collections", Look(text, "ops", DAEMON), Query(each, "{{job}} {{instance}} {{gc}}"))


def _logs() -> Panel:
    text = (
        "What master, workers and executors said. Lines of executors have the trace id of the step that they work for."
    )
    lucene = "resource.attributes.service.name:(spark\\-master OR spark\\-worker* OR spark\\-executor)"
    return lines_of_log("Log lines of the cluster", Look(text, "none", (links.DAEMONS, links.EXECUTORS)), lucene)
