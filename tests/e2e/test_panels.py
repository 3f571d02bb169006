"""Every query of every panel has data, after the events that some of them show."""

import json
import subprocess
import sys
from typing import Final

import pytest

from tests.contract.dashboards import MAX_SERIES, Query, is_of_others, queries
from tests.e2e import backends
from tests.e2e.stack import Stack
from tests.polling import poll_until

WINDOW_SECONDS: Final = 5400


def test_doctor_finds_no_problem(stack: Stack) -> None:
    """All is healthy and delivers, after what was stopped is back; what was left out is no problem."""
    expected = {
        name: f"the stack runs without the service {name}" for name in ("grafana", "kibana") if name in stack.left_out
    }
    poll_until(lambda: not_ok() == (0, expected), not_ok, seconds=120)


def not_ok() -> tuple[int, dict[str, str]]:
    """The exit code of the doctor, the hops that it does not find healthy, and what it says of them."""
    done = subprocess.run(
        [sys.executable, "-m", "spark_app", "doctor", "--json"], capture_output=True, text=True, check=False
    )
    checks = json.loads(done.stdout)["checks"]
    return done.returncode, {check["component"]: check["finding"] for check in checks if check["state"] != "ok"}


@pytest.mark.usefixtures("planted", "together", "harmed", "streams", "learned", "refused")
def test_every_query_of_every_panel_has_data() -> None:
    """Sent to the data source as Grafana sends it: for the last hour and a half, or for some moment in it."""
    empty = [query for query in queries() if not (is_of_others(query) or tells_by_absence(query))]

    def all_have_data() -> bool:
        empty[:] = [query for query in empty if not has_data(query)]
        return not empty

    poll_until(all_have_data, lambda: [f"{query}: {query.content}" for query in empty])


def tells_by_absence(query: Query) -> bool:
    """Whether it lists the alerts of a dashboard: none is what it should be."""
    return "ALERTS_FOR_STATE" in query.content.get("expr", "")


@pytest.mark.usefixtures("together", "harmed", "streams", "learned", "refused")
def test_every_panel_can_be_read() -> None:
    """A tile has at most six values, and bars and legends ten series, after all that these tests did to the stack."""
    found: dict[tuple[str, str], int] = {}
    for query in queries():
        if query.kind == "prometheus":
            seconds = 0 if query.content.get("instant") else WINDOW_SECONDS
            panel = (query.panel["type"], f"{query.board}: {query.panel['title']}")
            found[panel] = found.get(panel, 0) + backends.series(query.expression(), seconds=seconds)
    assert {title: series for (kind, title), series in found.items() if series > MAX_SERIES.get(kind, series)} == {}


def has_data(query: Query) -> bool:
    """Whether a query is answered by at least one point, line or trace."""
    match query.kind:
        case "prometheus":
            return bool(backends.ranged(query.expression(), seconds=WINDOW_SECONDS))
        case "elasticsearch":
            return backends.count_log_lines(query.content["query"].replace("$pipeline", "*")) > 0
        case "jaeger":
            return backends.traces(query.content["service"]) > 0
    raise AssertionError(f"no way to send a query to {query.kind}")
