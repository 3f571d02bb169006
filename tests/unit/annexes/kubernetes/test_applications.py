"""Applications on Kubernetes are found by their names, and what became of their pods is told."""

from pathlib import Path
from typing import Any

import pytest

from spark_app.annexes.kubernetes.applications import Ask, Pod, application
from spark_app.errors import InputError, MachineError

ID = "spark-7f2af33520c24aa99b2ccf19e8ad52e1"
HERE = "k8s://jobs/flights"
ENABLED = "#Java properties\nspark.eventLog.enabled=true\nspark.eventLog.dir="


def pod(name: str = "flights-driver", *, created: str = "2026-11-25T17:00:00Z", **status: Any) -> dict[str, Any]:
    """The pod of a driver."""
    labels = {"spark-role": "driver", "spark-app-selector": ID, "spark-app-name": "flights"}
    volume = {"name": "spark-conf-volume-driver", "configMap": {"name": "properties"}}
    metadata = {"name": name, "creationTimestamp": created, "labels": labels}
    return {"metadata": metadata, "spec": {"volumes": [volume]}, "status": {"phase": "Running"} | status}


def container(name: str = "spark-kubernetes-driver", **state: Any) -> dict[str, Any]:
    """The status of a container."""
    return {"name": name, "state": state}


def cluster(drivers: list[dict[str, Any]], properties: str = "", executors: list[dict[str, Any]] | None = None) -> Ask:
    """Lists the objects of a namespace."""

    def ask(namespace: str, kind: str, selector: str) -> list[dict[str, Any]]:
        assert namespace == "jobs"
        if kind == "configmaps":
            return [{"data": {"spark.properties": properties}}]
        return drivers if selector == "--selector=spark-role=driver" else executors or []

    return ask


@pytest.mark.parametrize(
    "location", ["k8s://jobs", "k8s://jobs/", "k8s://https://host:6443", "k8s://jobs/a/b", "k8s://"]
)
def test_a_location_names_a_namespace_and_an_application(location: str) -> None:
    """The address of an API server is none."""
    with pytest.raises(InputError, match="names no application: write k8s://NAMESPACE/APPLICATION"):
        application(location, cluster([pod()]))


@pytest.mark.parametrize(
    ("drivers", "said"),
    [
        ([], "no application 'flight' in the namespace jobs: no pod has the label spark-role=driver"),
        ([pod()], "there is flights, flights-driver; of a driver whose pod was deleted, name the event log itself"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(drivers: list[dict[str, Any]], said: str) -> None:
    """A driver whose pod was deleted is not known any more."""
    with pytest.raises(InputError, match=said):
        application("k8s://jobs/flight", cluster(drivers))


@pytest.mark.parametrize("name", ["flights", ID, "flights-driver"])
def test_an_application_has_its_name_its_id_and_its_pod(name: str) -> None:
    """All lead to its properties."""
    with pytest.raises(InputError, match=f"k8s://jobs/{name} writes no event log: set spark.eventLog.enabled=true"):
        application(f"k8s://jobs/{name}", cluster([pod()], "spark.eventLog.enabled=false"))


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        (r"file\:///events", "file:///events is a folder of its pod; set spark.eventLog.dir to a storage"),
        ("/events", "/events is a folder of its pod"),
        (r"wasb\://events", "cannot read wasb://events: known are"),
    ],
)
def test_a_log_that_only_its_pod_can_read_is_said_to_be_there(folder: str, said: str) -> None:
    """As is a storage that nobody knows."""
    with pytest.raises(InputError, match=said):
        application(HERE, cluster([pod()], ENABLED + folder))


def test_kubectl_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="cannot read k8s://jobs/flights: there is no kubectl on PATH"):
        application(HERE)


UNSCHEDULABLE = "0/1 nodes are available: 1 Insufficient cpu."
PREEMPTED = "default-scheduler: preempting to accommodate a higher priority pod"


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        ({}, None),
        ({"containerStatuses": [container(running={"startedAt": "now"})]}, None),
        ({"containerStatuses": [container(waiting={"reason": "ContainerCreating"})]}, None),
        ({"containerStatuses": [container(terminated={"reason": "Completed", "exitCode": 0})]}, None),
        ({"containerStatuses": [container(terminated={"reason": "Error", "exitCode": 1})]}, "Error: exit code 1"),
        (
            {"containerStatuses": [container(terminated={"reason": "OOMKilled", "exitCode": 137})]},
            "OOMKilled: exit code 137",
        ),
        (
            {"containerStatuses": [container(waiting={"reason": "ErrImagePull", "message": "no such image"})]},
            "ErrImagePull: no such image",
        ),
        (
            {"reason": "Evicted", "message": "The node was low on\n resource: memory."},
            "Evicted: The node was low on resource: memory.",
        ),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": UNSCHEDULABLE}
                ]
            },
            f"Unschedulable: {UNSCHEDULABLE}",
        ),
        ({"conditions": [{"type": "PodScheduled", "status": "True"}]}, None),
        (
            {
                "conditions": [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "PreemptionByScheduler",
                        "message": PREEMPTED,
                    }
                ],
                "containerStatuses": [container(terminated={"reason": "Error", "exitCode": 143})],
            },
            f"PreemptionByScheduler: {PREEMPTED}",
        ),
    ],
)
def test_the_trouble_of_a_pod_is_told_in_the_words_of_kubernetes(status: dict[str, Any], trouble: str | None) -> None:
    """The cause first: what the pod ended for, not with which exit code."""
    assert Pod(pod(**status)).trouble == trouble


def test_the_exit_code_is_that_of_the_driver() -> None:
    """Not of a sidecar; a template may give its container another name."""
    sidecar = container("sidecar", terminated={"exitCode": 0})
    assert Pod(pod(containerStatuses=[sidecar, container(terminated={"exitCode": 3})])).exit_code == 3
    assert Pod(pod(containerStatuses=[container("base", terminated={"exitCode": 4})])).exit_code == 4
    assert Pod(pod(containerStatuses=[container(running={})])).exit_code is None
    assert Pod(pod()).exit_code is None


@pytest.mark.parametrize(("phase", "is_running"), [("Pending", True), ("Running", True), ("Failed", False)])
def test_a_driver_runs_until_its_pod_has_ended(phase: str, *, is_running: bool) -> None:
    """One that waits for a node has not ended either."""
    assert Pod(pod(phase=phase)).is_running == is_running
