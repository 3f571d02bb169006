"""The stack with an S3 server: a day, a query and a training keep everything in its bucket: `make e2e-s3`."""

import fnmatch
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from grafana import queries
from grafana.queries import added
from spark_app.vocabulary import names
from spark_app.vocabulary.prometheus_names import label
from tests.e2e import backends
from tests.e2e.stack import HURRIED, records, run_in, started
from tests.polling import poll_until

FILE: Final = "docker-compose.s3.yml"
PROJECT: Final = "spark-app-s3"
STORE: Final = "s3://spark-app/run-store"
KEYS: Final = "import fsspec; print(*fsspec.filesystem('s3').find('spark-app'), sep='\\n')"
"""Prints the keys of all objects, with the bucket."""
PATIENCE_SECONDS: Final = 180


@dataclass(frozen=True)
class Work:
    """What was done.

    Attributes:
        day: The records of a day.
        query: The record of a query that read Kafka until there was nothing left.
        trained: The document of a training.
        scored: The record of a day that was scored.
    """

    day: list[dict[str, Any]]
    query: dict[str, Any]
    trained: dict[str, Any]
    scored: dict[str, Any]


@pytest.fixture(scope="module")
def stack() -> Iterator[None]:
    """A stack that runs; all of it is removed in the end."""
    with started(FILE, PROJECT):
        yield


@pytest.fixture(scope="module")
def work(stack: None) -> Work:
    """A day whose records go to the store of runs, a query over Kafka, and a model in production."""
    etl = ("run_etl.sh", "2024-01-01", "--json")
    day = records(run_in("spark-master", *etl, SPARK_APP_RUN_STORE=STORE).stdout)
    run_in("spark-master", "spark-app", "data", "stream", "--rate", "20", "--for", "5s")
    query = run_in("spark-master", "run_streaming.sh", "events", "--available-now", "--json")
    run_in("spark-master", "sh", "-c", HURRIED)
    trained = json.loads(run_in("spark-master", "run_ml.sh", "--config", "/dev/shm/hurried", "--json").stdout)
    date = trained["models"][0]["as_of"]
    scored = records(run_in("spark-master", "run_ml.sh", "score", "--date", date, "--json").stdout)
    return Work(day, records(query.stdout)[0], trained, scored[0])


def keys(pattern: str) -> list[str]:
    """The objects of the bucket whose key matches a pattern."""
    listed = run_in("spark-master", "python", "-c", KEYS).stdout.splitlines()
    return fnmatch.filter(listed, f"spark-app/{pattern}")


def test_all_work_ends_right(work: Work) -> None:
    """Of the day and of the query every row is accounted for; the model is in production, and scores."""
    runs = [*work.day, work.query, *work.trained["runs"], work.scored]
    assert {run["outcome"] for run in runs} == {"succeeded"}
    assert all(run["counts"]["read"] > 0 for run in [*work.day, work.query])
    assert work.trained["models"][0]["verdict"]["is_promoted"]
    assert {path for run in runs for path in run["tables"].values() if not path.startswith("s3a://spark-app/")} == set()


def test_everything_is_in_the_bucket(work: Work) -> None:
    """Tables, the checkpoint of the query, the model; and no table is on the disk of the cluster."""
    for pattern in (
        "warehouse/daily_sales/_delta_log/*.json",
        "checkpoints/*/offsets/*",
        "warehouse/_models/*/_SUCCESS",
        "warehouse/_locks/*",
    ):
        assert keys(pattern), pattern
    assert work.day
    found = run_in("spark-master", "find", "/data", "-name", "_delta_log")
    assert found.stdout == ""


def has_grown(query: str) -> bool:
    """Whether a query has a value above 0."""
    return (backends.number(query) or 0) > 0


def test_metrics_of_all_arrive(work: Work) -> None:
    """What the dashboards query: runs of each pipeline, and rows."""
    for run in (*work.day, work.query, work.trained["runs"][0]):
        runs = added(queries.grown(names.RUNS, "1h", f'{label(names.PIPELINE)}="{run["pipeline"]}"'))
        poll_until(partial(has_grown, runs), runs, seconds=PATIENCE_SECONDS)


def test_the_graph_knows_how_fresh_the_tables_are(work: Work) -> None:
    """And the store of runs has the day."""
    shown = run_in("spark-master", "spark-app", "graph", "--json")
    assets = {each["name"]: each for each in json.loads(shown.stdout)["assets"] if each["kind"] == "table"}
    assert assets["daily_sales"]["freshness"]["at"] is not None
    stored = {Path(key).stem for key in keys("run-store/records/*/*.json")}
    assert stored >= {run["run_id"] for run in work.day}
