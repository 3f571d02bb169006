"""Every query of every panel has data, after the events that some of them show."""

import json
import os
import subprocess
import sys
from typing import Final

import pytest

from tests.contract.dashboards import Query, queries
from tests.e2e import backends
from tests.e2e.stack import Stack
from tests.polling import poll_until

WINDOW_SECONDS: Final = 1800


def test_doctor_finds_no_problem(stack: Stack) -> None:
    """Every component is healthy and delivers, after those that were stopped are back."""
    absent = {name for name in stack.left_out if "-" not in name}
    poll_until(lambda: problems(absent) == {}, lambda: problems(absent), seconds=120)


def problems(absent: set[str]) -> dict[str, str]:
    """The hops that the doctor finds in a bad state, and what it says of them."""
    left_out = {f"SPARK_APP_BACKENDS__{name.upper()}": "null" for name in absent}
    command = [sys.executable, "-m", "app", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | left_out, check=False)
    checks = json.loads(done.stdout)["checks"]
    bad = {
        check["component"]: check["finding"]
        for check in checks
        if check["state"] != "ok" and check["component"] not in absent
    }
    assert done.returncode == (2 if bad else 0)
    return bad


@pytest.mark.usefixtures("together", "harmed", "streams", "learned", "refused")
def test_every_query_of_every_panel_has_data() -> None:
    """Sent to the data source as Grafana sends it: for the last half hour, or for some moment in it."""
    empty = list(queries())

    def all_have_data() -> bool:
        empty[:] = [query for query in empty if not has_data(query)]
        return not empty

    poll_until(all_have_data, lambda: [f"{query}: {query.content}" for query in empty])


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
