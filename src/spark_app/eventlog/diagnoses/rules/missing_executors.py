"""Jobs waited for executors that were asked for, and none was there; or fewer came than were asked for."""

from typing import Final

from spark_app.eventlog.diagnoses.rule import Alert, Limit, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import executor_requests, kubernetes_pods, pod_memory
from spark_app.eventlog.model.application import Application
from spark_app.formatting import count, duration, quantity, share, size
from spark_app.vocabulary.spark_settings import is_local

REQUEST: Final = "spark.kubernetes.executor.request.cores"
IMAGES: Final = ("spark.kubernetes.executor.container.image", "spark.kubernetes.container.image")
_ELSEWHERE: Final = (
    "Ask the cluster manager why it gave none: too little is free of a queue or of the cluster, other applications "
    "hold it, or an executor asks for more than any host has (spark.executor.cores, spark.executor.memory)."
)


@rule(
    subject="host",
    limits={
        "missing_executors_ms": Limit(
            30_000.0,
            "Missing executors: a job waits for the first one, or an application has too few, for at least this.",
            ge=0,
        ),
    },
    alert=Alert(
        "SparkExecutorsMissing",
        "In the last hour of {application} jobs waited for executors, and none was there.",
    ),
)
def missing_executors(app: Application, limits: Thresholds) -> list[Finding]:
    """Jobs waited for executors that were asked for, and none was there; or fewer came than were asked for.

    Evidence: the time in which a job or a query ran and no executor was there, how many were asked for
        (`spark.executor.instances`), how many came, and when the first one did.
    Why: nothing runs meanwhile.
    Change: on Kubernetes, whatever keeps their pods pending: too little is free on the nodes for what a pod requests, a
        node selector, a taint or a quota (`FailedScheduling`), or an image that cannot be pulled (`ErrImagePull`). No
        event log tells these apart; `kubectl describe` of the pods does while they are there. Elsewhere, the queue or
        the capacity of the cluster.
    Threshold: {missing_executors_ms} (project) at a stretch, or from the start to the first one: each start takes some
        seconds. Fewer than were asked for are an info, in applications that take as long. With dynamic allocation the
        log does not tell how many were asked for.
    Cost: the time in which jobs or queries waited. Spark waits for executors before it gives the program a context, for
        30 s at most (`spark.scheduler.maxRegisteredResourcesWaitingTime`): no job is there yet, and that is not in it.
    """
    asked, most = executor_requests.asked(app.properties), executor_requests.most_at_once(app)
    is_short = asked is not None and most < asked and app.usage.wall_ms >= limits.missing_executors_ms
    has_waited = _longest(app, asked) >= limits.missing_executors_ms
    if is_local(app.properties) or not app.properties or not app.is_whole or not (is_short or has_waited):
        return []
    waited = app.task_free.sums["waiting"] if has_waited else 0
    numbers = {"waited_ms": waited, "executors": most} | ({} if asked is None else {"executors_asked": asked})
    return [
        Finding(
            "missing_executors",
            "warning" if waited else "info",
            f"{_waited(app, waited)} {_came(app, asked, most)}.".strip(),
            _advice(app),
            numbers,
            cost_ms=waited or None,
        ),
    ]


def _longest(app: Application, asked: int | None) -> float:
    """The longest time in which executors were missed: by a job, or from the start, where they were asked for then."""
    longest = app.task_free.longest.get("waiting")
    if longest is None:
        return 0
    return max(longest.length_ms, 0 if asked is None else _first(app))


def _first(app: Application) -> float:
    """The time from the start to the first executor, or to the end without one."""
    return min((each.added for each in app.executors.values()), default=app.last) - (app.began or 0)


def _waited(app: Application, waited: int) -> str:
    """What was waited, and for how long at a stretch."""
    if not waited:
        return ""
    total = app.usage.wall_ms
    part = f"{duration(waited)} of {duration(total)} ({share(waited / total)})"
    return f"Jobs waited for {part}, and no executor was there."


def _came(app: Application, asked: int | None, most: int) -> str:
    """How many came of those that were asked for, and when."""
    wanted = "" if asked is None else f" of {quantity(asked, 'executor')} that the settings ask for"
    if not app.executors:
        return f"None{wanted} ever came"
    return f"The first came after {duration(max(0, _first(app)))}, and at most {count(most)}{wanted} were there at once"


def _advice(app: Application) -> str:
    """Where the reason is, which no event log has."""
    settings, namespace = app.properties, kubernetes_pods.namespace(app.properties)
    if namespace is None:
        return _ELSEWHERE
    pod, cores = pod_memory.pod_memory(settings), settings.get(REQUEST, settings.get("spark.executor.cores", "1"))
    memory = "" if pod is None else f" and {size(pod.limit)} of memory"
    images = (settings[name] for name in IMAGES if name in settings)
    selector = f"spark-app-selector={app.id},spark-role=executor"
    return (
        f"Their pods were pending, and no event log says why: while they are, `kubectl -n {namespace} describe pods "
        f"-l {selector}` does. FailedScheduling: no node that they may run on has {cores} CPU{memory} free, which a "
        "pod requests, or none matches its node selector and tolerations. ErrImagePull: nodes cannot pull "
        f"{next(images, 'their image')}. Without pods, a quota of the namespace forbids them."
    )
