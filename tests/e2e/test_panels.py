"""Every query of every panel has data, once what some of them are about has been provoked."""

import json
import os
import subprocess
import sys
from typing import Final

import pytest

from tests.contract.dashboards import Asked, queries
from tests.e2e import asked
from tests.e2e.stack import Stack
from tests.polling import poll_until

WINDOW_SECONDS: Final = 1800


def test_the_doctor_finds_everything_well(stack: Stack) -> None:
    """Each hop, and a trace, a metric and a log line in their stores, as soon as what was stopped is asked again."""
    absent = {name for name in stack.left_out if "-" not in name}
    poll_until(lambda: not_well(absent) == {}, f"all is well, but {not_well(absent)}", seconds=120)


def not_well(absent: set[str]) -> dict[str, str]:
    """The hops that the doctor finds in a bad state, and what it says of them."""
    left_out = {f"SPARK_APP_BACKENDS__{name.upper()}": "null" for name in absent}
    command = [sys.executable, "-m", "app", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | left_out, check=False)
    checks = json.loads(done.stdout)["checks"]
    bad = {check["hop"]: check["found"] for check in checks if check["state"] != "ok" and check["hop"] not in absent}
    assert done.returncode == (2 if bad else 0)
    return bad


PANELS: Final = [pytest.param(query, id=str(query)) for query in queries()]


@pytest.mark.usefixtures("together", "harmed", "refused")
@pytest.mark.parametrize("query", PANELS)
def test_every_query_of_every_panel_has_data(query: Asked) -> None:
    """Asked of the data source as Grafana asks."""
    poll_until(lambda: has_data(query), f"{query} has data: {query.query}")


def has_data(query: Asked) -> bool:
    """Whether a query is answered by at least one point, line or trace."""
    match query.kind:
        case "prometheus" if query.query.get("instant"):
            return bool(asked.PROMETHEUS.values(query.expression()))
        case "prometheus":
            return bool(asked.ranged(query.expression(), seconds=WINDOW_SECONDS))
        case "elasticsearch":
            return asked.found_lines(query.query["query"].replace("$pipeline", "*")) > 0
        case "jaeger":
            return asked.traces(query.query["service"]) > 0
    raise AssertionError(f"no way to ask {query.kind}")
