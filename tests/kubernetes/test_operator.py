"""An application of Kubeflow's operator is seen without a line of its own, by defaults that the chart gives it."""

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from spark_app.stack_samples import samples
from spark_app.stack_samples.samples import StackSamples
from tests.kubernetes import volumes
from tests.kubernetes.cluster import CHART, POD, ROOT, Namespace, image, load_images, rendered, run
from tests.kubernetes.test_applications import BUCKET, HERE, SEEN_SECONDS, SETTINGS, client, fill, has_ended, traces
from tests.polling import poll_until

OPERATOR: Final = "github.com/kubeflow/spark-operator/v2@v2.5.2"
"""The release of the operator whose chart is installed."""
IMAGE: Final = "SPARK_OPERATOR_IMAGE"
"""The variable with the image of the operator (REGISTRY/REPOSITORY:TAG), where it is another than that of its chart."""
KINDS: Final = [
    f"{kind}.sparkoperator.k8s.io" for kind in ("sparkapplications", "scheduledsparkapplications", "sparkconnects")
]


def operator_values() -> dict[str, Any]:
    """The values of the operator's chart that docs/kubernetes.md asks for."""
    text = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    [block] = [block.partition("```")[0] for block in text.split("```yaml\n")[1:] if "spark-defaults" in block]
    found: dict[str, Any] = yaml.safe_load(block)
    return found


def install_operator(operator: Namespace, jobs: Namespace, scratch: Path) -> None:
    """Installs the operator, for the applications of one namespace."""
    assert shutil.which("go"), f"Go is not there to get {OPERATOR}"
    folder = json.loads(run("go", "mod", "download", "-json", OPERATOR))["Dir"]
    (scratch / "values.yaml").write_text(yaml.safe_dump(operator_values()), encoding="utf-8")
    settings = [f"spark.jobNamespaces={{{jobs.name}}}", "spark.serviceAccount.create=false", "spark.rbac.create=false"]
    if own := os.environ.get(IMAGE):
        registry, repository, tag = (
            own.partition("/")[0],
            own.partition("/")[2].rpartition(":")[0],
            own.rpartition(":")[2],
        )
        settings += [f"image.registry={registry}", f"image.repository={repository}", f"image.tag={tag}"]
    options = [word for setting in settings for word in ("--set", setting)]
    chart = f"{folder}/charts/spark-operator-chart"
    run(
        "helm",
        "install",
        "spark-operator",
        chart,
        "--namespace",
        operator.name,
        "--values",
        scratch / "values.yaml",
        *options,
    )
    operator.wait("deployments")


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    """A namespace that enforces `restricted`, with the chart and its back ends, for which the operator works."""
    load_images()
    jobs = Namespace(f"operated-{secrets.token_hex(3)}")
    operator = Namespace(f"{jobs.name}-operator")
    has_kinds = KINDS[0] in run("kubectl", "get", "customresourcedefinitions", "--output=name")
    for each in (jobs, operator):
        each.create("restricted")
    try:
        jobs.kubectl("apply", "--filename", HERE / "backends.yaml")
        options = ("--namespace", jobs.name, "--set", f"spark.operator.namespace={operator.name}")
        run("helm", "install", "seen", CHART, *SETTINGS, *options)
        install_operator(operator, jobs, tmp_path_factory.mktemp("operator"))
        jobs.wait("deployments")
        with jobs.forwarded("service/s3", 7070) as endpoint:
            fill(endpoint)
        jobs.wait("statefulsets")
        yield jobs
        jobs.kubectl("delete", "sparkapplications,scheduledsparkapplications", "--all", "--timeout=60s")
    finally:
        run("helm", "uninstall", "spark-operator", "--namespace", operator.name, "--ignore-not-found", "--wait")
        for each in (jobs, operator):
            each.delete()
        if not has_kinds:
            run("kubectl", "delete", "customresourcedefinitions", *KINDS, "--ignore-not-found")


def submit(namespace: Namespace, scratch: Path) -> None:
    """Creates the application of flights.yaml, with what the namespace asks of pods and the image."""
    application = yaml.safe_load((HERE / "flights.yaml").read_text(encoding="utf-8"))
    pod = yaml.safe_load(POD.read_text(encoding="utf-8"))["spec"]
    application["spec"]["image"] = image()
    for role in ("driver", "executor"):
        containers = [pod["containers"][0] | {"name": f"spark-kubernetes-{role}"}]
        application["spec"][role]["template"] = {"spec": pod | {"containers": containers}}
    (scratch / "application.yaml").write_text(yaml.safe_dump(application), encoding="utf-8")
    namespace.kubectl("apply", "--filename", scratch / "application.yaml")


def state(namespace: Namespace) -> str:
    """How far the operator says that the application is."""
    return namespace.kubectl("get", "sparkapplication/flights", "--output=jsonpath={.status.applicationState.state}")


def test_an_application_of_the_operator_is_seen_without_a_line_of_its_own(namespace: Namespace, tmp_path: Path) -> None:
    """With the pods and the nodes of its driver and executors; its specification says nothing of event logs."""
    assert "eventLog" not in (HERE / "flights.yaml").read_text(encoding="utf-8")
    submit(namespace, tmp_path)
    over = ("COMPLETED", "FAILED", "SUBMISSION_FAILED")
    poll_until(
        lambda: state(namespace) in over,
        lambda: namespace.kubectl("describe", "sparkapplication/flights"),
        seconds=2 * SEEN_SECONDS,
    )
    assert state(namespace) == "COMPLETED", namespace.kubectl("describe", "sparkapplication/flights")
    with namespace.forwarded("service/jaeger", 16686) as jaeger:
        poll_until(lambda: has_ended(traces(jaeger)), "Jaeger has no span of the application", seconds=SEEN_SECONDS)
        spans = [span for trace in traces(jaeger) for span in trace["spans"]]
    [whole] = [span for span in spans if span["operationName"].startswith("application ")]
    tags = {tag["key"]: tag["value"] for tag in whole["tags"]}
    assert (tags["k8s.namespace.name"], tags["k8s.pod.name"]) == (namespace.name, "flights-driver")
    assert tags["k8s.node.name"]


DRIVER: Final = "shop-spark-app-queries-driver"
QUERIES: Final = (
    "pipelines.enabled=true", "pipelines.claim=data", "pipelines.operator.enabled=true", "pipelines.days.enabled=false",
    "pipelines.queries.enabled=true", "pipelines.queries.names={events}",
    "pipelines.operator.driver.coreRequest=100m", "pipelines.operator.executor.coreRequest=100m",
    "bridge.enabled=false", "reports.enabled=false", "spark.serviceAccount.create=false", "pipelines.profile=true",
    "otlpEndpoint=http://seen-spark-app-collector:4318",
)  # fmt: skip
COUNT: Final = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.eventLog.enabled", "false").getOrCreate()
events = spark.read.format("delta").load("/data/warehouse/events")
print("rows:", events.count(), events.select("event_id").distinct().count())
"""


@pytest.fixture
def queries(namespace: Namespace, tmp_path: Path) -> Iterator[Namespace]:
    """A query of the demo shop as an application of the operator, with an executor, and a volume for both."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": namespace.name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": namespace.name,
            "resources": {"requests": {"storage": "2Gi"}},
        },
    }
    options = [word for setting in QUERIES for word in ("--set", setting)]
    with volumes.volumes(namespace, {"data": "2Gi"}, tmp_path):
        volumes.apply([claim], tmp_path)
        try:
            run("helm", "install", "shop", CHART, "--namespace", namespace.name, *SETTINGS, *options)
            yield namespace
        finally:
            run("helm", "uninstall", "shop", "--namespace", namespace.name, "--ignore-not-found", "--wait")
            namespace.kubectl("delete", "pods", "--selector", "spark-role=driver", "--timeout=180s")
            namespace.kubectl("delete", "pods/count", "persistentvolumeclaims/data", "--ignore-not-found")


def commits(namespace: Namespace) -> int:
    """How many micro-batches are committed; 0 without a driver."""
    asked = ["kubectl", "--namespace", namespace.name, "exec", DRIVER, "--", "find", "/data/checkpoints", "-path"]
    found = subprocess.run([*asked, "*/commits/[0-9]*"], capture_output=True, text=True, check=False, timeout=60)
    return len(found.stdout.split())


def count(namespace: Namespace, scratch: Path) -> tuple[int, int]:
    """How many rows the query has written, and how many events they are of."""
    pod = yaml.safe_load(POD.read_text(encoding="utf-8"))["spec"]
    container = pod["containers"][0] | {
        "name": "count",
        "image": image(),
        "command": ["python3", "-c", COUNT],
        "env": [{"name": "HOME", "value": "/scratch"}],
        "workingDir": "/scratch",
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in ("data", "scratch", "tmp")],
    }
    folders: list[dict[str, Any]] = [{"name": name, "emptyDir": {}} for name in ("scratch", "tmp")]
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    spec = pod | {"restartPolicy": "Never", "containers": [container], "volumes": [*folders, claim]}
    metadata = {"name": "count", "namespace": namespace.name}
    volumes.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}], scratch)
    namespace.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/count", "--timeout=300s")
    [line] = [line for line in namespace.kubectl("logs", "count").splitlines() if line.startswith("rows:")]
    rows, events = line.split()[1:]
    return int(rows), int(events)


def sampled(namespace: Namespace, scratch: Path) -> StackSamples:
    """What was sampled of the only application of the release, beside its event log in the bucket."""
    with namespace.forwarded("service/s3", 7070) as endpoint:
        storage = client(endpoint)
        listed = storage.list_objects_v2(Bucket=BUCKET, Prefix="events/").get("Contents", [])
        [key] = [each["Key"] for each in listed if each["Key"].endswith(samples.SUFFIX)]
        storage.download_file(BUCKET, key, str(scratch / "samples"))
    return samples.read(scratch / "samples")


def test_the_server_accepts_all_pipelines_as_applications(namespace: Namespace, tmp_path: Path) -> None:
    """Days, queries and training, with certificates; unknown and wrong fields are errors."""
    settings = (
        "pipelines.enabled",
        "pipelines.queries.enabled",
        "pipelines.training.enabled",
        "tls.enabled",
        "tls.spark",
    )
    more = [f"{name}=true" for name in (*settings, "pipelines.operator.enabled")] + ["tls.secret=tls"]
    options = [word for setting in [*more, "pipelines.claim=data"] for word in ("--set", setting)]
    objects = rendered("all", *SETTINGS, "--namespace", namespace.name, *options)
    (tmp_path / "objects.yaml").write_text(objects, encoding="utf-8")
    namespace.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename", tmp_path / "objects.yaml")
    kinds = sorted(each["kind"] for each in yaml.safe_load_all(objects) if each and "Spark" in each["kind"])
    assert kinds == ["ScheduledSparkApplication", "SparkApplication", "SparkApplication"]


def test_queries_finish_their_micro_batch_and_the_next_driver_goes_on(queries: Namespace, tmp_path: Path) -> None:
    """The pod of the driver is deleted while they run: it ends with exit code 0, and no event is written twice.

    The stacks of driver and executors were sampled meanwhile, over the claim that their pods mount.
    """
    poll_until(lambda: commits(queries) > 1, lambda: queries.kubectl("get", "pods"), seconds=5 * SEEN_SECONDS)
    assert queries.pods(spark_role="executor")
    template = "--output=jsonpath={.status.containerStatuses[0].state.terminated.exitCode} "
    watch = ["kubectl", "--namespace", queries.name, "get", "pod", DRIVER, "--watch", template]
    follow = ["kubectl", "--namespace", queries.name, "logs", "--follow", DRIVER]
    before = commits(queries)
    with (
        subprocess.Popen(watch, stdout=subprocess.PIPE, text=True) as watching,
        subprocess.Popen(follow, stdout=subprocess.PIPE, text=True) as following,
    ):
        queries.kubectl("delete", "pod", DRIVER)
        said = following.communicate(timeout=SEEN_SECONDS)[0]
        watching.terminate()
        codes = watching.communicate()[0].split()
    assert set(codes) == {"0"}, said
    assert "1 succeeded" in said
    assert "sample" not in said
    assert {each.role for each in sampled(queries, tmp_path).processes} >= {"driver", "python_driver", "executor"}
    poll_until(lambda: commits(queries) > before, lambda: queries.kubectl("get", "pods"), seconds=5 * SEEN_SECONDS)
    run("helm", "uninstall", "shop", "--namespace", queries.name, "--wait")
    queries.kubectl("wait", "--for=delete", f"pod/{DRIVER}", "--timeout=180s")
    rows, events = count(queries, tmp_path)
    assert rows == events > 0
