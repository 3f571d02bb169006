"""Records the programs of `pods` on Kubernetes: `python -m tests.eventlogs.record_pods [NAME]...`.

Needs a cluster whose one node is this machine (`KUBECONFIG`, kubectl on PATH), with the image of this project: programs
and event logs are in a folder of the node. Kept is what is read of each log, without the names of the machine.
"""

import json
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import zstandard

from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from tests.eventlogs import pods
from tests.eventlogs.record import scrubber
from tests.eventlogs.record_diagnoses import PROJECT, needed
from tests.kubernetes.cluster import POD, Namespace, run
from tests.polling import poll_until

RECORDED: Final = Path(__file__).parent / "kubernetes"
MOUNTED: Final = "/recorded"
RUN_SECONDS: Final = 300
WAITING_SECONDS: Final = 40
"""How long executors are not there where that is the cause."""
POOL: Final = "spark-app-recorded"
"""A label that the node gets late."""
DRIVER: Final = "flights-driver"
SCRATCH: Final = "spark.kubernetes.{}.volumes.emptyDir.scratch.{}"
LOW, HIGH = "recorded-low", "recorded-high"


def scratch_of(role: str, size: str) -> dict[str, str]:
    """A disk of pods that may take so much."""
    return {SCRATCH.format(role, "mount.path"): "/scratch", SCRATCH.format(role, "options.sizeLimit"): size}


class Case(NamedTuple):
    """A run: its program, the settings that are its own, and what happens to its pods meanwhile."""

    program: str
    settings: dict[str, str]
    meanwhile: Callable[[Namespace], None]


def nothing(namespace: Namespace) -> None:
    """Leaves the pods alone."""


def delete_executor(namespace: Namespace) -> None:
    """Deletes the pod of an executor that works."""
    until_running(namespace)
    namespace.kubectl("delete", "pod", executor_pod(namespace), "--wait=false")


def evict_executor(namespace: Namespace) -> None:
    """Evicts the pod of an executor that works, as a drain of its node does."""
    until_running(namespace)
    name = executor_pod(namespace)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace.name}}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(eviction, file)
        file.flush()
        path = f"/api/v1/namespaces/{namespace.name}/pods/{name}/eviction"
        run("kubectl", "create", "--raw", path, "--filename", file.name)


def preempt_executor(namespace: Namespace) -> None:
    """Starts a pod that is more important than executors, and needs more of a processor than is free."""
    until_running(namespace)
    requests = {"cpu": f"{free_cpu() + 300}m"}
    container = {"name": "urgent", "image": "localhost/pause:3.10", "resources": {"requests": requests}}
    spec = {"priorityClassName": HIGH, "containers": [container], "terminationGracePeriodSeconds": 0}
    apply(namespace, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent"}, "spec": spec})
    namespace.kubectl("wait", "pod/urgent", "--for=condition=Ready", "--timeout=90s")
    namespace.kubectl("delete", "pod/urgent")


def add_node(namespace: Namespace) -> None:
    """Gives the node the label that executors ask for, after some time, as an autoscaler adds nodes."""
    until_pending(namespace)
    time.sleep(WAITING_SECONDS)
    run("kubectl", "label", "node", "--all", f"{POOL}=true", "--overwrite")


def give_up(namespace: Namespace) -> None:
    """Deletes the driver, as somebody does who has waited for executors."""
    until_pending(namespace)
    time.sleep(WAITING_SECONDS)
    namespace.kubectl("delete", "pod", DRIVER, "--wait=false")


SMALL_HEAP: Final = {"spark.executor.extraJavaOptions": "-XX:-AlwaysPreTouch"}
"""Of a JVM that has not taken its heap yet: a Python worker is then the largest process, which the kernel kills."""
CASES: Final[dict[str, Case]] = {
    "undisturbed": Case("undisturbed", {}, nothing),
    "out-of-memory-planted": Case("out-of-memory", {}, nothing),
    "out-of-memory-quiet": Case("out-of-memory", {"spark.executor.memoryOverhead": "1g"}, nothing),
    "python-out-of-memory-planted": Case("python-out-of-memory", SMALL_HEAP, nothing),
    "python-out-of-memory-quiet": Case(
        "python-out-of-memory", SMALL_HEAP | {"spark.executor.memoryOverhead": "2g"}, nothing
    ),
    "evicted-planted": Case("evicted", scratch_of("executor", "100Mi"), nothing),
    "evicted-quiet": Case("evicted", scratch_of("executor", "1Gi"), nothing),
    "deleted-planted": Case("deleted", {}, delete_executor),
    "drained-planted": Case("drained", {}, evict_executor),
    "preempted-planted": Case("preempted", {}, preempt_executor),
    "unschedulable-planted": Case(
        "unschedulable", {f"spark.kubernetes.executor.node.selector.{POOL}": "true"}, add_node
    ),
    "image-planted": Case("image", {"spark.kubernetes.executor.container.image": "spark-app:no-such-tag"}, give_up),
    "driver-evicted-planted": Case("driver-evicted", scratch_of("driver", "50Mi"), nothing),
}
SETTINGS: Final = {
    "spark.kubernetes.submission.waitAppCompletion": "false",
    "spark.executor.cores": "1",
    "spark.kubernetes.executor.request.cores": "0.4",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.dir": f"file://{MOUNTED}/events",
    "spark.executor.extraJavaOptions": "-XX:+AlwaysPreTouch",
}


def main(names: Sequence[str]) -> None:
    """Records some runs, or all."""
    RECORDED.mkdir(exist_ok=True)
    namespace = Namespace(f"recorded-{secrets.token_hex(3)}")
    namespace.create("privileged")
    try:
        prepare(namespace)
        for name in names or CASES:
            record(namespace, name)
    finally:
        namespace.delete()
        run("kubectl", "delete", "priorityclass", LOW, HIGH, "--ignore-not-found")


def prepare(namespace: Namespace) -> None:
    """Makes the service account of drivers, and two priorities of pods."""
    namespace.kubectl("create", "serviceaccount", "spark")
    account = f"--serviceaccount={namespace.name}:spark"
    namespace.kubectl("create", "rolebinding", "spark", "--clusterrole=edit", account)
    for name, value in ((LOW, -10), (HIGH, 1000)):
        run("kubectl", "create", "priorityclass", name, f"--value={value}")


def record(namespace: Namespace, name: str) -> None:
    """Runs a program, replaces its recorded log, and says what is reported about it."""
    run("kubectl", "label", "node", "--all", f"{POOL}-")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "events").mkdir()
        shutil.copy(pods.__file__, folder)
        template = POD.read_text(encoding="utf-8").replace("spec:\n", f"spec:\n  priorityClassName: {LOW}\n", 1)
        (folder / "executor.yaml").write_text(template, encoding="utf-8")
        for each in (folder, *folder.iterdir()):
            each.chmod(0o777)
        case = CASES[name]
        own = {"spark.recorded.cause": case.program} | settings(folder) | case.settings
        namespace.submit(f"local://{MOUNTED}/pods.py", *(f"{key}={value}" for key, value in own.items()))
        case.meanwhile(namespace)
        poll_until(lambda: has_ended(namespace), lambda: printed(namespace), seconds=RUN_SECONDS)
        pack(folder / "events", recorded(name), scrubber({scratch: "/work", str(PROJECT): "/project"}))
        namespace.kubectl("delete", "pod", DRIVER, "--ignore-not-found")
    sys.stdout.write(f"{name}: {[f'{each.rule}: {each.text}' for each in findings(name)]}\n")
    sys.stdout.flush()


def settings(folder: Path) -> dict[str, str]:
    """What all programs have, which run in a folder of the node."""
    volumes: dict[str, str] = {}
    for role in ("driver", "executor"):
        volume = f"spark.kubernetes.{role}.volumes.hostPath.recorded"
        volumes |= {f"{volume}.mount.path": MOUNTED, f"{volume}.options.path": str(folder)}
    template = {"spark.kubernetes.executor.podTemplateFile": str(folder / "executor.yaml")}
    return SETTINGS | volumes | template


def has_ended(namespace: Namespace) -> bool:
    """Whether the driver has; one that was deleted is gone soon."""
    pods = namespace.pods(spark_role="driver")
    return all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in pods)


def until_running(namespace: Namespace) -> None:
    """Waits until both executors work."""
    poll_until(lambda: pods.RUNNING in printed(namespace), "no two tasks run", seconds=RUN_SECONDS)


def until_pending(namespace: Namespace) -> None:
    """Waits until executors were asked for."""
    poll_until(lambda: bool(namespace.pods(spark_role="executor")), "no executor is asked for", seconds=RUN_SECONDS)


def printed(namespace: Namespace) -> str:
    """What the driver has printed; nothing before its container runs."""
    [driver] = namespace.pods(spark_role="driver")
    return namespace.kubectl("logs", DRIVER) if driver["status"]["phase"] == "Running" else ""


def executor_pod(namespace: Namespace) -> str:
    """The name of an executor's pod that runs."""
    running = [pod for pod in namespace.pods(spark_role="executor") if pod["status"]["phase"] == "Running"]
    return str(running[0]["metadata"]["name"])


def apply(namespace: Namespace, manifest: dict[str, Any]) -> None:
    """Creates an object."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(manifest, file)
        file.flush()
        namespace.kubectl("apply", "--filename", file.name)


def free_cpu() -> int:
    """What pods can still request of the processors of the node, in thousandths."""
    [node] = json.loads(run("kubectl", "get", "nodes", "--output=json"))["items"]
    pods = json.loads(run("kubectl", "get", "pods", "--all-namespaces", "--output=json"))["items"]
    live = [pod for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed")]
    containers = [container for pod in live for container in pod["spec"]["containers"]]
    requested = (each.get("resources", {}).get("requests", {}).get("cpu", "0") for each in containers)
    return millicores(node["status"]["allocatable"]["cpu"]) - sum(map(millicores, requested))


def millicores(text: str) -> int:
    """An amount of processors as Kubernetes writes it: `2`, `400m`."""
    return int(text.removesuffix("m")) if text.endswith("m") else round(float(text) * 1000)


def recorded(name: str) -> Path:
    """The recorded log of a run."""
    return RECORDED / f"{name}.zst"


def pack(logs: Path, file: Path, scrub: Callable[[bytes], bytes]) -> None:
    """Keeps what is read of a log; of one that breaks off in a line, without that."""
    (log,) = (path for path in logs.iterdir() if not path.name.startswith("."))
    content = log.read_bytes()
    lines = scrub(content[: content.rfind(b"\n") + 1]).splitlines()
    file.write_bytes(zstandard.ZstdCompressor(level=19).compress(b"".join(map(needed, lines))))


def findings(name: str) -> list[Finding]:
    """What is reported about a run, with the thresholds as they are shipped."""
    return diagnose(reader.read(recorded(name)).app, Thresholds())


if __name__ == "__main__":
    main(sys.argv[1:])
