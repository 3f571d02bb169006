"""A project of somebody else, as `spark-app init` writes it, runs in the stack beside the demo shop."""

import json
from pathlib import Path
from typing import Final

import pytest

from spark_app.commands.init import contents, write
from tests.e2e.stack import Stack, docker, kafka_topics, run_in

FOLDER: Final = "/data/own"
"""A folder that driver and executors see, as they see `/project` where PROJECT_FOLDER mounts one."""


@pytest.fixture
def own(stack: Stack, tmp_path: Path) -> str:
    """The folder of the project in the containers."""
    assert stack.seconds >= 0
    write(contents("own", "own"), tmp_path / "own")
    docker("cp", f"{tmp_path}/own/.", f"spark-master:{FOLDER}")
    return FOLDER


def test_its_day_runs_on_the_cluster_and_its_topics_are_created(own: str) -> None:
    """Its raw rows are found in its folder, though tables and runs are below `/data`; no worker has its code."""
    run_in("spark-master", "env", "--chdir", own, "python", "-m", "spark_app.execution.kafka_topics")
    assert {"page_views", "user_events"} <= set(kafka_topics().split())
    done = run_in("spark-master", "env", "--chdir", own, "run_etl.sh", "2024-01-01", "--json")
    [run] = json.loads(done.stdout)["runs"]
    assert (run["pipeline"], run["outcome"], run["counts"]["published"]) == ("etl.daily_orders", "succeeded", 200)
    assert run["tables"]["daily_orders"] == "/data/warehouse/daily_orders"
