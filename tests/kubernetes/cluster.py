"""The cluster of `KUBECONFIG`, as the tests use it: by kubectl, helm and spark-submit."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from spark_app.spark.java_runtime import spark_home
from tests.pins import variables

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "charts" / "spark-app"
POD: Final = ROOT / "config" / "spark" / "kubernetes-pod.yaml"
LOAD: Final = "KUBERNETES_LOAD"
"""The variable with the command that takes names of images of the local Docker engine and gives them to the cluster,
such as `kind load docker-image`; without it the cluster has them, or pulls them."""
RUN_SECONDS: Final = 600
_FORWARDED: Final = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")


def run(*command: str | Path, **variables: str) -> str:
    """The standard output of a command.

    Raises:
        AssertionError: It has failed; says how.
    """
    done = subprocess.run(
        [str(word) for word in command], cwd=ROOT, env=os.environ | variables, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=RUN_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def rendered(release: str, *options: str, chart: Path = CHART) -> str:
    """The objects that Helm makes of the chart for the version of the cluster."""
    version = json.loads(run("kubectl", "version", "--output=json"))["serverVersion"]["gitVersion"]
    return run("helm", "template", release, chart, "--kube-version", version, "--no-hooks", *options)


def image() -> str:
    """The image of spark-app."""
    return os.environ.get("SPARK_APP_IMAGE") or variables()["SPARK_APP_IMAGE"]


@cache
def load_images() -> None:
    """Gives the cluster the images of the local Docker engine, where it has to be told."""
    if load := os.environ.get(LOAD):
        pinned = variables()
        run(*load.split(), image(), pinned["COLLECTOR_IMAGE"], pinned["JAEGER_IMAGE"], "versity/versitygw:v1.8.0")


class Namespace:
    """A namespace that enforces a pod security standard."""

    def __init__(self, name: str) -> None:
        """Creates nothing yet."""
        self.name = name

    def create(self, standard: str) -> None:
        """Creates it."""
        label = f"pod-security.kubernetes.io/enforce={standard}"
        run("kubectl", "create", "namespace", self.name)
        run("kubectl", "label", "namespace", self.name, label)

    def delete(self) -> None:
        """Deletes it, with all that is in it."""
        run("kubectl", "delete", "namespace", self.name, "--timeout=120s")

    def kubectl(self, *words: str | Path) -> str:
        """What kubectl prints."""
        return run("kubectl", "--namespace", self.name, *words)

    def pods(self, **labels: str) -> list[dict[str, Any]]:
        """The pods with some labels."""
        selector = ",".join(f"{name.replace('_', '-')}={value}" for name, value in labels.items())
        found: dict[str, Any] = json.loads(self.kubectl("get", "pods", "--selector", selector, "--output=json"))
        pods: list[dict[str, Any]] = found["items"]
        return pods

    @contextmanager
    def forwarded(self, what: str, port: int) -> Iterator[str]:
        """The address on this machine at which a port in the cluster answers."""
        command = ["kubectl", "--namespace", self.name, "port-forward", what, f":{port}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forwarding:
            try:
                line = forwarding.stdout.readline() if forwarding.stdout else ""
                forwarded = _FORWARDED.search(line)
                assert forwarded, f"{what} is not forwarded: {line}"
                yield f"http://127.0.0.1:{forwarded[1]}"
            finally:
                forwarding.terminate()

    def submit(self, program: str, *confs: str) -> str:
        """Runs a program with spark-submit in cluster mode; returns the name of the driver's pod.

        Its driver and executors are those that the namespace allows.
        """
        master = run("kubectl", "config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
        pods = [f"spark.kubernetes.{role}.podTemplateFile={POD}" for role in ("driver", "executor")]
        settings = [
            f"spark.kubernetes.namespace={self.name}",
            f"spark.kubernetes.container.image={image()}",
            "spark.kubernetes.authenticate.driver.serviceAccountName=spark",
            "spark.executor.instances=2",
            "spark.executor.memory=512m",
            "spark.driver.memory=512m",
            "spark.kubernetes.driver.request.cores=0.1",
            "spark.kubernetes.executor.request.cores=0.1",
            "spark.kubernetes.driver.pod.name=flights-driver",
            *pods,
            *confs,
        ]
        words = [word for setting in settings for word in ("--conf", setting)]
        submit = ROOT / ".venv" / "bin" / "spark-submit"
        options = ("--master", f"k8s://{master}", "--deploy-mode", "cluster", "--name", "flights")
        run(submit, *options, *words, program, SPARK_HOME=str(spark_home()))
        return "flights-driver"

    def wait(self, kind: str) -> None:
        """Waits until what is deployed is ready."""
        for each in self.kubectl("get", kind, "--output=name").split():
            self.kubectl("rollout", "status", each, "--timeout=180s")
