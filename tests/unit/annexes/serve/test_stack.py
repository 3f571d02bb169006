"""What the first page says of the services of a stack, and of its alerts."""

import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest

from spark_app.annexes.serve.stack import SERVICES, Stack
from spark_app.doctor import checks
from spark_app.settings import Settings, load_settings
from tests.answering import Answering, Refusal, answering
from tests.polling import poll_until
from tests.receivers import dead_port
from tests.unit.doctor.test_checks import SIGNS, bridge, target

ALERTS: Final = [
    {
        "labels": {"alertname": "PipelineInputsChanged", "severity": "info"},
        "annotations": {"summary": "2 days"},
        "startsAt": "2026-11-28T16:30:00.123Z",
    },
    {"labels": {"alertname": "Watchdog", "severity": "none"}, "startsAt": "2026-11-28T16:30:00Z"},
    {
        "labels": {"alertname": "KafkaDown", "severity": "critical"},
        "annotations": {
            "summary": "no broker",
            "dashboard_url": "http://localhost:3000/d/x",
            "trace_url": "javascript:1",
        },
        "startsAt": "2026-11-28T16:31:00Z",
    },
]


@pytest.fixture
def answers() -> Iterator[Answering]:
    """A program that answers as all back ends of a healthy stack would."""
    others = {
        "/prometheus/api/v1/query": bridge(up=1.0),
        "/prometheus/api/v1/targets": {"data": {"activeTargets": [target("jaeger")]}},
        "/alertmanager/api/v2/alerts": ALERTS,
    }
    with answering(SIGNS | others) as program:
        yield program


def settings(program: Answering, **changes: str | None) -> Settings:
    """Settings of a container: it asks elsewhere than links lead."""
    shipped = load_settings()
    inside = {name: f"{program.url}/{name}" for name in type(shipped.backends).model_fields}
    inside["kafka"] = f"127.0.0.1:{dead_port()}"
    backends = shipped.backends.model_copy(update=changes)
    return shipped.model_copy(update={"backends": backends, "backends_inside": inside})


def test_links_are_those_of_the_browser_and_states_those_of_the_doctor(answers: Answering) -> None:
    """Each component that the doctor checks has a row, but for the page itself."""
    assert {*SERVICES, "reports"} == {component.name for component in checks.COMPONENTS}
    rows = {row.name: row for row in Stack(settings(answers, kibana=None), patience=60).look().services}
    assert (rows["Jaeger"].state, rows["Jaeger"].link) == ("ok", "http://localhost:16686")
    assert rows["Grafana"].link == "http://localhost:3000/d/platform-overview"
    assert rows["Spark master"].finding == "2 alive workers"
    assert (rows["Kibana"].state, rows["Kibana"].link) == ("left out", None)
    assert (rows["Kafka"].state, rows["Kafka"].link) == ("down", None)


def test_alerts_are_listed_the_worst_first_with_links_to_pages(answers: Answering) -> None:
    """The one that always fires is none; an address that is no page is no link."""
    alerts = Stack(settings(answers), patience=60).look().alerts
    assert alerts is not None
    assert [(alert.name, alert.mood) for alert in alerts] == [("KafkaDown", "bad"), ("PipelineInputsChanged", "info")]
    assert alerts[0].links == {"dashboard": "http://localhost:3000/d/x"}


def test_alerts_are_not_known_without_alertmanager(answers: Answering) -> None:
    """That is not the same as none."""
    answers.answers["/alertmanager/api/v2/alerts"] = Refusal(503, "")
    assert Stack(settings(answers), patience=60).look().alerts is None


def test_a_service_that_has_answered_and_has_no_name_any_more_is_down(answers: Answering) -> None:
    """One that never had a name was left out of the start."""
    found = settings(answers)
    stack = Stack(found, patience=60)
    rows = {row.name: row.state for row in stack.look().services}
    assert rows["Grafana"] == "ok"
    gone = {"grafana": "http://grafana.invalid:1", "jupyter": "http://jupyter.invalid:1"}
    later = Stack(found.model_copy(update={"backends_inside": found.backends_inside | gone}), patience=60)
    later._seen = stack._seen - {"jupyter"}
    rows = {row.name: row.state for row in later.look().services}
    assert (rows["Grafana"], rows["Jupyter"]) == ("down", "left out")


def test_a_page_does_not_wait_for_a_service_that_is_silent(answers: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has those that have answered, and says of the other that it has not; its answer is there for the next page."""
    release = threading.Event()

    def slow(*_: Any) -> Any:
        release.wait(60)
        return {"data": []}

    answers.answers["/jaeger/api/services"] = slow
    monkeypatch.setattr("spark_app.doctor.backends.TIMEOUT_SECONDS", 60.0)
    stack = Stack(settings(answers), patience=0.1)

    def states() -> tuple[str, str]:
        rows = {row.name: row.state for row in stack.look().services}
        return rows["Jaeger"], rows["Prometheus"]

    poll_until(lambda: states() == ("asked", "ok"), states)
    release.set()
    stack._patience = 60
    assert {row.name: row.state for row in stack.look().services}["Jaeger"] == "ok"
