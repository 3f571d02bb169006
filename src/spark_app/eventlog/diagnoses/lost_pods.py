"""Advice about executors whose pods Kubernetes ended, and Python workers that were killed, by what Spark logs."""

from collections.abc import Mapping
from typing import Final

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.model import kubernetes_pods, memory_settings, pod_memory
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.pod_exit import EVICTED, OUT_OF_MEMORY, PREEMPTING, PodExit
from spark_app.eventlog.model.pod_memory import PodMemory
from spark_app.formatting import size
from spark_app.vocabulary.spark_settings import is_local

EXIT_OUT_OF_HEAP: Final = 52
EXIT_KILLED: Final = 137
EXIT_TERMINATED: Final = 143
_DECOMMISSION: Final = (
    "spark.decommission.enabled=true, with spark.storage.decommission.enabled=true, lets an executor hand over its "
    "shuffle output and its cache before it goes"
)
_DISK: Final = (
    "It filled its local disk with spilled and shuffled data: raise the limit that the message names (sizeLimit of the "
    "emptyDir, or ephemeral-storage in the template of pods), or give executors a volume named spark-local-dir-1 of a "
    "persistentVolumeClaim, which Spark takes for local data."
)
_NODE: Final = (
    "Its node ran short of what the message names. Kubelets evict first what uses more than it requests: the requests "
    "of executors are spark.kubernetes.executor.request.cores and the memory of their settings."
)
_KILLED: Final = (
    "Its container was killed (SIGKILL), and Kubernetes does not say that its memory was the reason: look for OOM in "
    "the log of the node, for a pod that was deleted by force, and for a node that was shut down."
)


def advice(app: Application, pod: PodExit) -> str | None:
    """What to do about executors that ended so; None where Kubernetes says no more than their exit code."""
    if pod.container == OUT_OF_MEMORY:
        return _more_memory(app.properties)
    if pod.reason == EVICTED:
        return _DISK if "storage" in (pod.message or "") or "EmptyDir" in (pod.message or "") else _NODE
    if pod.reason == PREEMPTING:
        return f"A critical pod needed its place; {_DECOMMISSION}."
    if pod.is_deleted or pod.code == EXIT_TERMINATED:
        return _who_deleted(app)
    if pod.code == EXIT_OUT_OF_HEAP:
        raised = settings_advice.now(app.properties, memory_settings.EXECUTOR_MEMORY)
        return f"Its heap was full: raise {raised}, or run fewer tasks at once (spark.executor.cores)."
    return _KILLED if pod.code == EXIT_KILLED else None


def killed_worker(settings: Mapping[str, str]) -> str:
    """What to do about a Python worker that was killed, but not its executor."""
    more = f"run fewer tasks at once ({memory_settings.cores(settings)})." if is_local(settings) else _raised(settings)
    limited = "where its host ran out of it"
    if kubernetes_pods.namespace(settings) is not None:
        limited = f"at the memory limit of its pod{_limit(settings)}"
    return (
        f"A Python worker ended without an exception. The kernel killed it for its memory, {limited}, or it crashed in "
        f"native code, whose traceback spark.python.worker.faulthandler.enabled=true shows. For memory: {more}"
    )


def _more_memory(settings: Mapping[str, str]) -> str:
    """How to raise the limit of the pod, with the shares that make it up."""
    return f"The kernel killed it at the memory limit of its pod{_limit(settings)}: {_raised(settings)}"


def _limit(settings: Mapping[str, str]) -> str:
    pod = pod_memory.pod_memory(settings)
    return "" if pod is None else f", by the settings {size(pod.limit)} ({_shares(pod)})"


def _raised(settings: Mapping[str, str]) -> str:
    """The settings that give processes beside the heap more memory."""
    factor = pod_memory.KUBERNETES_FACTOR
    if pod_memory.FACTOR in settings or kubernetes_pods.namespace(settings) is None:
        factor = pod_memory.FACTOR
    workers = ""
    if settings.get(pod_memory.LANGUAGE) == pod_memory.PYTHON_PROGRAM:
        share = _now(settings, pod_memory.PYTHON)
        workers = f" {share} gives Python workers a share of their own, at which they fail with a MemoryError instead."
    return (
        f"raise {_now(settings, pod_memory.OVERHEAD)}, or {_now(settings, factor)}, which is a factor of the heap and "
        f"ignored where the overhead is set; or run fewer tasks at once (spark.executor.cores).{workers}"
    )


def _shares(pod: PodMemory) -> str:
    named = {"heap": pod.heap, "off-heap memory": pod.off_heap, "Python workers": pod.python}
    shares = [f"{size(share)} of {name}" for name, share in named.items() if share]
    return ", ".join([*shares, f"{size(pod.overhead)} of overhead for all else"])


def _who_deleted(app: Application) -> str:
    """That the log does not say who deleted a pod, and what does for an hour."""
    namespace = kubernetes_pods.namespace(app.properties) or "default"
    return (
        "Its pod was deleted: by the scheduler for a pod of higher priority, by a drain of its node, by an autoscaler "
        f"or by a person. The log does not say by whom; `kubectl -n {namespace} get events` does for an hour "
        f"(Preempted, Evicted, Killing). A priorityClassName in the template of pods keeps executors; {_DECOMMISSION}."
    )


def _now(settings: Mapping[str, str], name: str) -> str:
    return f"{name} ({f'now {settings[name][:40]}' if name in settings else 'not set'})"
