"""Incidents declare what exists: alerts, panels and rules; the page lists them, and why other alerts have none."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from spark_app.annexes.incidents.catalogue import incidents
from spark_app.annexes.incidents.incident import Incident
from spark_app.annexes.incidents.page import rows
from spark_app.eventlog.diagnoses.rule import rules
from tests.contract.dashboards import BOARDS, panels
from tests.contract.metrics import names_in
from tests.contract.test_alerts import ALERTS
from tests.contract.violations import violations

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "incidents.md").read_text(encoding="utf-8")
INCIDENTS: Final = incidents()


def test_an_incident_fires_an_alert_that_exists() -> None:
    """By the name that it has in prometheus/rules."""
    assert {each.alert.name for each in INCIDENTS.values()} <= {str(alert) for alert in ALERTS}


def series_of(panel: dict[str, Any]) -> set[str]:
    """The names of the series that a panel queries."""
    expressions = [target.get("expr", "") for target in panel.get("targets", [])]
    return {name for text in expressions for name in re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", text)}


def test_a_panel_exists_and_shows_the_series_of_its_query() -> None:
    """What Prometheus was asked is what the panel shows."""

    def rule(name: str) -> Iterator[str]:
        panel: Any = INCIDENTS[name].panel
        [board] = [board for board in BOARDS if str(board) == panel.dashboard]
        shown = [each for each in panels(board) if each.get("title") == panel.title]
        if len(shown) != 1:
            yield f"{panel.dashboard} has {len(shown)} panels {panel.title!r}"
        for unknown in names_in(INCIDENTS[name].panel.query) - series_of(shown[0] if shown else {}):
            yield f"{panel.title} does not show {unknown}"

    assert violations(rule, list(INCIDENTS)) == []


def test_a_cause_is_a_finding_of_a_rule_that_exists() -> None:
    """Where it is a finding at all."""
    named = {each.cause.name for each in INCIDENTS.values() if each.cause and each.cause.is_finding}
    assert named
    assert named <= set(rules())


def test_what_is_seen_is_about_this_planting() -> None:
    """A query about an application or an environment names it; others are about a service, of which there is one."""

    def rule(name: str) -> Iterator[str]:
        incident: Incident = INCIDENTS[name]
        if not incident.touches:
            yield "says of no container that it touches it"
        if incident.alert.labels == "":
            yield "any alert of this name would count"

    assert violations(rule, list(INCIDENTS)) == []


def table(heading: str) -> list[list[str]]:
    """The cells of the table below a heading of the page."""
    section = re.split(r"^## ", PAGE.split(f"## {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_lists_each_incident() -> None:
    """After a change: python -m spark_app.annexes.incidents.page prints the rows."""
    assert table("The incidents") == rows()


def test_each_alert_has_an_incident_or_a_reason_why_not() -> None:
    """And no alert has both."""
    reasons = {name.strip("`"): reason for name, reason in table("Alerts without an incident")}
    assert all(reasons.values())
    fired = [each.alert.name for each in INCIDENTS.values()]
    assert sorted([*reasons, *set(fired)]) == sorted(str(alert) for alert in ALERTS)
