"""A Spark application on Kubernetes that knows nothing of spark-app is seen by the chart, as its user would see it."""

import json
import os
import re
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

import boto3
import pytest

from tests.kubernetes.cluster import CHART, Namespace, image, load_images, rendered, run
from tests.polling import poll_until

HERE: Final = Path(__file__).parent
KEYS: Final = {"AWS_ACCESS_KEY_ID": "a-key-of-the-test", "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-test"}
BUCKET: Final = "observed"
CLUSTER: Final = "the cluster of the test"
SEEN_SECONDS: Final = 120
POD_LOGS: Final = "KUBERNETES_POD_LOGS"
"""The variable with the folder of each node that has the logs of pods, where it is another than /var/log/pods."""
VALUES: Final = (
    f"image.repository={image().rpartition(':')[0]}",
    f"image.tag={image().rpartition(':')[2]}",
    f"eventLogs.location=s3://{BUCKET}/events",
    "eventLogs.s3.endpoint=http://s3:7070",
    "eventLogs.s3.secret=s3",
    f"clusterName={CLUSTER}",
    "collector.traces.endpoint=jaeger:4317",
    # A cluster of one node may have nothing that provides volumes.
    "collector.persistence.enabled=false",
    "bridge.persistence.enabled=false",
    "reports.persistence.enabled=false",
    # What has no endpoint, which are logs here, is in the collector's own log with all that it has.
    "collector.verbosity=detailed",
)
SETTINGS: Final = [word for value in VALUES for word in ("--set", value)]
EVENT_LOG: Final = (
    "spark.eventLog.enabled=true",
    f"spark.eventLog.dir=s3a://{BUCKET}/events",
    "spark.hadoop.fs.s3a.endpoint=http://s3:7070",
)
"""All that an application sets to be seen; the rest is how it reaches this S3 server, which is not Amazon's."""
STORAGE: Final = (
    "spark.hadoop.fs.s3a.path.style.access=true",
    "spark.hadoop.fs.s3a.endpoint.region=us-east-1",
    *(f"spark.kubernetes.driver.secretKeyRef.{key}=s3:{key}" for key in KEYS),
)


@dataclass
class Application:
    """An application that has ended.

    Attributes:
        driver: The name of its driver's pod.
        lines: What that pod has logged.
        traces: Its traces, by Jaeger.
        report: What `spark-app report` says of its event log.
    """

    driver: str
    lines: list[str]
    traces: list[dict[str, Any]]
    report: dict[str, Any]

    @property
    def logged(self) -> list[dict[str, Any]]:
        """The lines of Spark."""
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    def tags(self, kind: str) -> list[dict[str, Any]]:
        """The attributes of its spans of a kind."""
        spans = [span for trace in self.traces for span in trace["spans"]]
        named = [span for span in spans if span["operationName"].partition(" ")[0] == kind]
        return [{tag["key"]: tag["value"] for tag in span["tags"]} for span in named]


@pytest.fixture(scope="module")
def namespace() -> Iterator[Namespace]:
    """A new namespace with the chart, an S3 server with a bucket, and Jaeger."""
    load_images()
    namespace = Namespace(f"observed-{secrets.token_hex(3)}")
    namespace.create("restricted")
    try:
        namespace.kubectl("apply", "--filename", HERE / "backends.yaml")
        run("helm", "install", "seen", CHART, "--namespace", namespace.name, *SETTINGS)
        namespace.wait("deployments")
        with namespace.forwarded("service/s3", 7070) as endpoint:
            fill(endpoint)
        namespace.wait("statefulsets")
        yield namespace
    finally:
        namespace.delete()


def fill(endpoint: str) -> None:
    """Makes the bucket, with the folder of event logs, which Spark does not make, and the program."""
    storage = client(endpoint)
    storage.create_bucket(Bucket=BUCKET)
    storage.put_object(Bucket=BUCKET, Key="events/")
    storage.put_object(Bucket=BUCKET, Key="flights.py", Body=(HERE / "flights.py").read_bytes())


def client(endpoint: str) -> Any:
    """A client of the S3 server."""
    keys = {name.lower(): key for name, key in KEYS.items()}
    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)


@pytest.fixture(scope="module")
def logs(namespace: Namespace) -> Iterator[Namespace]:
    """A namespace that may read folders of the node, with what reads the logs of pods."""
    reading = Namespace(f"{namespace.name}-logs")
    reading.create("privileged")
    settings = (
        "podLogs.enabled=true",
        f"podLogs.namespaces={{{namespace.name}}}",
        f"podLogs.directory={os.environ.get(POD_LOGS, '/var/log/pods')}",
        f"otlpEndpoint=http://seen-spark-app-collector.{namespace.name}:4318",
        "bridge.enabled=false",
        "reports.enabled=false",
        "spark.serviceAccount.create=false",
    )
    options = [word for setting in settings for word in ("--set", setting)]
    try:
        run("helm", "install", "logs", CHART, "--namespace", reading.name, *options)
        reading.wait("daemonsets")
        yield reading
    finally:
        reading.delete()


@pytest.fixture(scope="module")
def application(namespace: Namespace, logs: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Application:
    """A program that runs in cluster mode, and is seen."""
    driver = namespace.submit(f"s3a://{BUCKET}/flights.py", *EVENT_LOG, *STORAGE)
    lines = namespace.kubectl("logs", driver).splitlines()
    assert "airports: 97" in lines, "\n".join(lines[-50:])
    with namespace.forwarded("service/jaeger", 16686) as jaeger:
        poll_until(lambda: has_ended(traces(jaeger)), "Jaeger has no span of the application", seconds=SEEN_SECONDS)
        found = traces(jaeger)
    with namespace.forwarded("service/s3", 7070) as endpoint:
        command = (sys.executable, "-m", "spark_app", "report", f"s3://{BUCKET}/events", "--json")
        home = {"SPARK_APP_HOME": str(tmp_path_factory.mktemp("home"))}
        report = json.loads(run(*command, AWS_ENDPOINT_URL=endpoint, AWS_REGION="us-east-1", **KEYS, **home))
    return Application(driver, lines, found, report["applications"][0])


def traces(jaeger: str) -> list[dict[str, Any]]:
    """The traces of the application."""
    with urlopen(f"{jaeger}/api/traces?service=flights&limit=20", timeout=30) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"] or []
        return found


def has_ended(found: list[dict[str, Any]]) -> bool:
    """Whether the span of the application is among them: it is the last."""
    return any(span["operationName"].startswith("application ") for trace in found for span in trace["spans"])


def test_a_driver_and_its_executors_run_in_restricted_pods(namespace: Namespace, application: Application) -> None:
    """Without root, with a read-only root, and with the rights of the chart's service account alone."""
    [pod] = namespace.pods(spark_role="driver")
    assert pod["status"]["phase"] == "Succeeded"
    [security] = [each["securityContext"] for each in pod["spec"]["containers"]]
    assert security["readOnlyRootFilesystem"]
    assert [line for line in application.lines if "forbidden" in line.lower()] == []


def test_spans_name_the_pods(namespace: Namespace, application: Application) -> None:
    """Of the application that of its driver, of a task that of its executor; with their nodes."""
    [whole] = application.tags("application")
    assert (whole["k8s.namespace.name"], whole["k8s.pod.name"]) == (namespace.name, application.driver)
    [driver] = namespace.pods(spark_role="driver")
    assert whole["k8s.node.name"] == driver["spec"]["nodeName"]
    nodes = namespace.kubectl("get", "nodes", "--output=jsonpath={.items[*].metadata.name}").split()
    tasks = application.tags("task")
    registered = "".join(line["msg"] for line in application.logged)
    assert tasks
    for task in tasks:
        assert task["k8s.namespace.name"] == namespace.name
        assert task["k8s.node.name"] in nodes
        assert task["k8s.pod.name"].endswith(f"-exec-{task['spark.executor.id']}")
    assert f"with ID {tasks[0]['spark.executor.id']}" in registered


def test_metrics_have_the_namespace(namespace: Namespace, application: Application) -> None:
    """As the collector got them from the bridge, with the name of the cluster, and without that of a pod."""

    def resources() -> list[dict[str, str]]:
        text = namespace.kubectl("logs", "statefulset/seen-spark-app-collector")
        found = [each for each in text.split("ResourceMetrics #")[1:] if "-> spark.app.name: Str(flights)" in each]
        return [dict(re.findall(r"-> (\S+): Str\((.*)\)", each.partition("ScopeMetrics #")[0])) for each in found]

    poll_until(lambda: bool(resources()), "the collector has no metrics of the application", seconds=SEEN_SECONDS)
    places = {name: value for name, value in resources()[-1].items() if name.startswith("k8s.")}
    assert places == {"k8s.namespace.name": namespace.name, "k8s.cluster.name": CLUSTER}


def test_log_lines_have_the_trace(application: Application) -> None:
    """The lines of Spark and of the program are JSON, with the id of the trace in which the application is."""
    assert {line["trace_id"] for line in application.logged} == {application.traces[0]["traceID"]}
    [line] = [line for line in application.logged if line["logger"] == "flights"]
    assert (line["level"], line["msg"]) == ("WARN", "97 airports")
    assert "97 airports" in application.lines, "the program's own line is gone"


def test_log_records_have_the_trace_and_the_pod(namespace: Namespace, application: Application) -> None:
    """Of the driver and of executors, as the collector got them."""
    trace = application.traces[0]["traceID"]

    def services() -> set[str]:
        text = namespace.kubectl("logs", "statefulset/seen-spark-app-collector")
        resources = text.split("ResourceLog #")[1:]
        own = [each for each in resources if f"Trace ID: {trace}" in each and "k8s.pod.name: Str(" in each]
        return {match[1] for each in own if (match := re.search(r"-> service\.name: Str\((.+)\)", each))}

    wanted = {"spark-driver", "spark-executor"}
    poll_until(lambda: services() == wanted, lambda: f"log records of {services()} only", seconds=SEEN_SECONDS)


def test_a_report_is_served(namespace: Namespace, application: Application) -> None:
    """By the port that its pod serves on; the list leads to it."""
    name = application.report["id"]
    with namespace.forwarded("statefulset/seen-spark-app-reports", 8090) as address:

        def page(path: str) -> str:
            with urlopen(Request(address + path, headers={"Host": "localhost:8090"}), timeout=30) as answer:
                content: bytes = answer.read()
                return content.decode()

        poll_until(lambda: f"/reports/{name}.html" in page("/"), "the list has no report", seconds=SEEN_SECONDS)
        assert "flights" in page(f"/reports/{name}.html")


def test_a_report_is_made_on_another_machine(application: Application) -> None:
    """By the S3 URL of the folder of event logs."""
    assert application.report["name"] == "flights"
    assert application.report["outcome"] == "ended"


def test_collector_and_bridge_answer_in_the_cluster(namespace: Namespace) -> None:
    """`helm test` asks it by its name, and the collector whether it takes telemetry."""
    run("helm", "test", "seen", "--namespace", namespace.name, "--timeout=120s")


@pytest.mark.parametrize("has_claims", [False, True])
def test_the_server_accepts_all_objects(namespace: Namespace, tmp_path: Path, *, has_claims: bool) -> None:
    """With everything switched on; unknown and wrong fields are errors."""
    switched_on = ["history", "podLogs", "networkPolicy", "pipelines", "pipelines.queries", "pipelines.training"]
    settings = [f"{name}.enabled=true" for name in switched_on]
    settings += [f"{name}.persistence.enabled={has_claims}".lower() for name in ("bridge", "collector")]
    options = [word for setting in settings for word in ("--set", setting)]
    options += [
        "--namespace",
        namespace.name,
        "--set",
        "pipelines.claim=data",
        "--set",
        f"spark.operator.namespace={namespace.name}",
    ]
    objects = rendered("all", *SETTINGS, *options)
    (tmp_path / "objects.yaml").write_text(objects, encoding="utf-8")
    namespace.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename", tmp_path / "objects.yaml")
