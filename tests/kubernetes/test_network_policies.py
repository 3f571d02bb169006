"""NetworkPolicies of the chart let nobody in who has no reason; whether they are enforced is up to the cluster."""

from typing import Any, Final

import pytest
import yaml

from tests.kubernetes.cluster import rendered

PEER: Final = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
EVERYTHING: Final = ("networkPolicy", "history", "podLogs", "pipelines", "pipelines.queries", "pipelines.training")


def objects_with(*settings: str) -> list[dict[str, Any]]:
    """The objects of the chart with everything switched on, and some values."""
    switched_on = [f"{name}.enabled=true" for name in EVERYTHING]
    values = ("eventLogs.location=s3://bucket/events", "pipelines.claim=data", *switched_on, *settings)
    text = rendered("seen", *(word for value in values for word in ("--set", value)))
    return [each for each in yaml.safe_load_all(text) if each]


def pods(objects: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """The labels of the pods of the release by their component."""
    found = {}
    for each in objects:
        spec = each.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template:
            labels = template["metadata"]["labels"]
            found[labels["app.kubernetes.io/component"]] = labels
    return found


def reachable(objects: list[dict[str, Any]]) -> dict[str, set[int]]:
    """The ports on which somebody may reach a pod, by its component."""
    policies = [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]
    found = {}
    for component, labels in pods(objects).items():
        own = [each for each in policies if each["podSelector"]["matchLabels"].items() <= labels.items()]
        assert own, f"everybody may reach {component}"
        rules = [rule for each in own for rule in each.get("ingress", [])]
        assert all(rule["from"] for rule in rules), f"a list without peers lets everybody reach {component}"
        found[component] = {port["port"] for rule in rules for port in rule["ports"]}
    return found


NOBODY: Final[dict[str, set[int]]] = {
    name: set() for name in ("reports", "history", "pod-logs", "days", "queries", "training")
}


def test_nobody_reaches_a_pod_who_needs_not() -> None:
    """Programs of the namespace reach the collector, and `helm test` the bridge."""
    assert reachable(objects_with()) == NOBODY | {"collector": {4317, 4318}, "bridge": {9464}}


@pytest.mark.parametrize(
    ("peers", "opened"),
    [
        ("prometheus", {"collector": {4317, 4318, 8888}, "bridge": {9464}, "pod-logs": {8888}}),
        ("history", {"collector": {4317, 4318}, "bridge": {9464}, "history": {18080}}),
        ("senders", {"collector": {4317, 4318}, "bridge": {9464}}),
    ],
)
def test_peers_reach_what_they_are_named_for(peers: str, opened: dict[str, set[int]]) -> None:
    """And no other port; the ports are those of the pods."""
    objects = objects_with(f"networkPolicy.{peers}[0].namespaceSelector.matchLabels.team=a")
    assert reachable(objects) == NOBODY | opened
    peered = [rule for each in objects if each["kind"] == "NetworkPolicy" for rule in each["spec"].get("ingress", [])]
    named = {port["port"] for rule in peered if PEER in rule["from"] for port in rule["ports"]}
    assert named == {"prometheus": {8888, 9464}, "history": {18080}, "senders": {4317, 4318}}[peers]
