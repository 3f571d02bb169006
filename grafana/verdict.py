"""The first row of a dashboard: whether all is well, since when, and where to look, by the alerts of its rules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from grafana import links
from grafana.links import Link
from grafana.look import NONE_IS_GOOD, UNKNOWN, Column, Look
from grafana.panels import Panel, Query, figure, rows
from grafana.queries import BRIDGE, COLLECTOR, RANGE, known
from spark_app.vocabulary import names
from spark_app.vocabulary.prometheus_names import label

RULES: Final = Path(__file__).resolve().parents[1] / "prometheus" / "rules"
FIRING: Final = "suffix: firing"
PROMETHEUS: Final = 'up{job="prometheus"}'
ARRIVES: Final = {"0": ("does not arrive", "red"), "1": ("arrives", "green")}
YES: Final = {"0": ("yes", "green")}
WELL: Final = {"0": ("well", "green")}
SEVERITIES: Final = {"critical": ("critical", "red"), "warning": ("warning", "orange"), "info": ("info", "blue")}
OF_A_PIPELINE: Final = (links.RUNS_OF_CELL, links.TRACES_OF_CELL, links.LOGS_OF_CELL)
SUBJECTS: Final = ("instance", "target", "exporter", "job")
"""What an alert is about that is about no pipeline and no application."""
ABOUT: Final = ("alertname", "severity", label(names.PIPELINE), label(names.APPLICATION), *SUBJECTS)


def verdict(uid: str, *, onward: Sequence[Link] = OF_A_PIPELINE) -> tuple[Panel, ...]:
    """The first row of a dashboard.

    Args:
        uid: The dashboard: its alerts are those whose `dashboard_url` leads to it.
        onward: Where the name of a pipeline leads to.
    """
    return _row(of_board(uid), onward)


def verdict_of_all() -> tuple[Panel, ...]:
    """The first row of the overview."""
    return _row('alertname!="Watchdog"', OF_A_PIPELINE)


def of_board(uid: str) -> str:
    """Matches the alerts of a dashboard."""
    return f'alertname=~"{"|".join(alerts_of(uid))}"'


def alerts_of(uid: str) -> list[str]:
    """The names of the alerts that lead to a dashboard, in the order of the alphabet."""
    return sorted(rule["alert"] for rule in _rules() if f"/d/{uid}" in rule["annotations"].get("dashboard_url", ""))


def how_many(where: str) -> str:
    """How many alerts fire that somebody must act on; of one that fires twice about one subject, one."""
    return known(f"count(max by ({', '.join(ABOUT)}) ({_firing(where)}))", PROMETHEUS)


def _firing(where: str) -> str:
    return f'ALERTS{{alertstate="firing", severity=~"critical|warning", {where}}}'


def _rules() -> list[dict[str, Any]]:
    documents = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(RULES.glob("*.yml"))]
    return [rule for each in documents for group in each["groups"] for rule in group["rules"] if "alert" in rule]


def _row(where: str, onward: Sequence[Link]) -> tuple[Panel, ...]:
    return _is_well(where), _since(where), _telemetry(), _where_to_look(where, onward)


def _is_well(where: str) -> Panel:
    text = "Whether an alert of this dashboard fires that somebody must act on, and how many do."
    look = Look(text, FIRING, (links.ALERTS,), NONE_IS_GOOD, texts=YES, empty=UNKNOWN)
    return figure("Is it well?", look, Query(how_many(where))).sized(8, 3)


def _since(where: str) -> Panel:
    text = "How long ago the oldest alert that fires began; if none does, the last one that fired in the time range."
    began = f"ALERTS_FOR_STATE{{{where}}}"
    now = f"min({began} and ignoring (alertstate) {_firing(where)})"
    before = (
        f"max(last_over_time({began}[{RANGE}]) and ignoring (alertstate) last_over_time({_firing(where)}[{RANGE}]))"
    )
    look = Look(text, "dateTimeFromNow", (links.ALERTS,), empty="No alert in this time range")
    return figure("Alert began", look, Query(f"1000 * ({now} or {before})")).sized(8, 3)


def _telemetry() -> Panel:
    text = "While telemetry does not arrive, an empty panel below says nothing: what it shows is not known."
    look = Look(text, "none", (links.PATH,), {None: "red", 1: "green"}, texts=ARRIVES, empty=UNKNOWN)
    return figure("Telemetry", look, Query(f"min({COLLECTOR} or {BRIDGE})")).sized(8, 3)


def _where_to_look(where: str, of_a_pipeline: Sequence[Link]) -> Panel:
    columns = (
        Column("alertname", "Alert", links=(links.ALERTS,)),
        Column("Value", "For", "s", width=95),
        Column(label(names.PIPELINE), "Pipeline", links=of_a_pipeline),
        Column(
            label(names.APPLICATION),
            "Application",
            links=(links.PERFORMANCE_OF_CELL, links.TRACES_OF_APPLICATION_CELL, links.LOGS_OF_APPLICATION_CELL),
        ),
        Column("severity", "Severity", texts=SEVERITIES, width=80),
        *(Column(subject, subject.capitalize()) for subject in SUBJECTS),
    )
    text = "What fires, the newest first, how long, and about what; docs/runbook.md has a section for each alert."
    query = f"sort(max by ({', '.join(ABOUT)}) (time() - ALERTS_FOR_STATE and ignoring (alertstate) {_firing(where)}))"
    return rows(
        "Where to look",
        Look(text, "none", (links.ALERTS, links.TROUBLE), empty="No alert fires"),
        columns,
        Query(query),
    ).sized(24, 6)
