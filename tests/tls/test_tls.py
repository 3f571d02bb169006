"""The stack with TLS: jobs run, telemetry arrives, and who listens to the network can read nothing: `make e2e-tls`."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.vocabulary import names
from spark_app.vocabulary.prometheus_names import label, series
from tests.e2e.stack import ROOT, compose, records, run_in, started
from tests.polling import poll_until
from tests.tls.listening import CLIENT_HELLO, Heard, listening

FILE: Final = "docker-compose.tls.yml"
PROJECT: Final = "spark-app-tls"
TLS_PORTS: Final = {4318, 8088, 8480, 8481, 8482, 9090, 9093, 9115, 9200, 9464, 13133, 16686, 18480, 19092}
"""Ports that are asked while a job runs; all but those on which Spark's processes talk to each other."""
SPARK_PORT: Final = 7077
REDIRECTING: Final = 8080
RESTART_SECONDS: Final = 300
QUERIES: Final = ("events", "balances", "carts", "alerts")
"""One of each kind: a table, a table that is merged into, state in Python, and a topic."""
PROGRAM: Final = """
import json

from pyspark.sql import SparkSession
from spark_app.settings import load_settings
from spark_app.spark.kafka import source_options

spark = SparkSession.builder.appName("records").getOrCreate()
kafka = source_options(load_settings().kafka)
rows = spark.read.format("kafka").options(**kafka).option("subscribe", "user_events,purchase_alerts").load()
print(json.dumps(dict(rows.repartition(4).groupBy("topic").count().collect())))
"""


@dataclass(frozen=True)
class Work:
    """What was done while somebody listened.

    Attributes:
        heard: What was heard.
        day: The records of a day.
        streams: The records of streaming queries: those of a minute, and those that go on from there.
        topics: How many records each topic has in the end, as a job counts them.
        doctor: What `doctor` says of each component.
        began: When it began, a Unix time.
    """

    heard: Heard
    day: list[dict[str, Any]]
    streams: list[dict[str, Any]]
    topics: dict[str, int]
    doctor: dict[str, dict[str, Any]]
    began: float

    def count(self, name: str, query: str) -> int:
        """The sum of a count over the runs of a streaming query."""
        return sum(run["counts"].get(name, 0) for run in self.streams if run["pipeline"] == f"streaming.{query}")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The certificate of the authority of a stack that runs; all of the stack is removed in the end."""
    with started(FILE, PROJECT) as printed:
        assert "https://localhost:9090" in printed
        file = tmp_path_factory.mktemp("tls") / "ca.pem"
        compose("cp", "certificates:/certificates/authority/ca.pem", str(file), file=FILE)
        yield file


@pytest.fixture(scope="module")
def work(authority: Path) -> Work:
    """A day, streaming queries, a job with tasks that shuffle, and `doctor`, while somebody listens."""
    began = time.time()
    with listening("spark-app") as heard:
        day = records(run_in("spark-master", "run_etl.sh", "2024-01-01", "customers", "--json").stdout)
        streams = [*streamed("--for", "60s"), *streamed("--available-now")]
        run_in("spark-master", "sh", "-c", f"cat >/dev/shm/job.py <<'END'\n{PROGRAM}\nEND")
        topics = json.loads(run_in("spark-master", "spark-submit", "/dev/shm/job.py").stdout)
        doctor = checks(authority)
    return Work(heard, day, streams, topics, doctor, began)


def streamed(*options: str) -> list[dict[str, Any]]:
    """The records of streaming queries, which read what the demo shop sends."""
    return records(run_in("spark-master", "run_streaming.sh", *QUERIES, *options, "--json").stdout)


def metric(query: str) -> float | None:
    """The value of a query to Prometheus; None if it has none (yet)."""
    url = "https://prometheus:9090/api/v1/query"
    answer = run_in("spark-master", "curl", "-fsS", "-G", url, "--data-urlencode", f"query={query}").stdout
    result = json.loads(answer)["data"]["result"]
    return float(result[0]["value"][1]) if result else None


def checks(authority: Path) -> dict[str, dict[str, Any]]:
    """What `spark-app doctor` says of each component."""
    bundles = {"REQUESTS_CA_BUNDLE": "", "CURL_CA_BUNDLE": ""}  # those of this machine would win
    trust = {"SSL_CERT_FILE": str(authority), "OTEL_EXPORTER_OTLP_CERTIFICATE": str(authority), "STACK_SCHEME": "https"}
    command = [str(Path(sys.executable).with_name("spark-app")), "doctor", "--json"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | bundles | trust, capture_output=True, text=True, check=False
    )
    return {each["component"]: each for each in json.loads(done.stdout)["checks"]}


def unwell(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    """What is wrong."""
    return {name: check["finding"] for name, check in found.items() if check["state"] not in {"ok", "left out"}}


def test_work_ends_right_and_its_telemetry_arrives(work: Work) -> None:
    """By HTTPS to each store, and from each target."""
    assert [run["outcome"] for run in work.day] == ["succeeded"]
    assert unwell(work.doctor) == {}
    assert [work.doctor[part]["state"] for part in ("trace", "metric", "log")] == ["ok"] * 3
    assert re.match(r"\d+ certificates; ", work.doctor["certificates"]["finding"])


def test_queries_read_and_write_topics(work: Work) -> None:
    """Each goes on where its checkpoint says, so that nothing is missing and nothing doubled; its metrics arrive."""
    assert {run["outcome"] for run in work.streams} == {"succeeded"}
    assert {run["pipeline"] for run in work.streams} == {f"streaming.{query}" for query in QUERIES}
    for query in QUERIES:
        assert work.count("read", query) == work.topics["user_events"]
        read = grown(work, query)
        poll_until(lambda: metric(read) == work.topics["user_events"], lambda: f"{read} is {metric(read)}")  # noqa: B023
    assert work.count("published", "alerts") == work.topics["purchase_alerts"]


def grown(work: Work, query: str) -> str:
    """What a streaming query has read, as Prometheus is asked."""
    window = f"{time.time() - work.began:.0f}s"
    return f'sum(increase({series(names.READ)}{{{label(names.PIPELINE)}="streaming.{query}"}}[{window}] anchored))'


def test_nothing_can_be_read(work: Work, figures: list[str]) -> None:
    """No request, no message of Spark, no telemetry and no row, on any port; and every port was heard."""
    assert work.heard.readable == {}
    assert TLS_PORTS - set(work.heard.sizes) == set()
    assert work.heard.sizes[SPARK_PORT] > 1000
    figures.append(
        f"heard {sum(work.heard.sizes.values()):,} bytes on {len(work.heard.sizes)} ports, and could read nothing"
    )


def test_every_connection_but_those_of_spark_begins_with_tls(work: Work) -> None:
    """Those of Spark begin with its own exchange of keys."""
    others = {there[3] for there, said in work.heard.first.items() if not said.startswith(CLIENT_HELLO)}
    assert others & TLS_PORTS == set()


def test_who_listens_would_have_read_what_is_not_encrypted(authority: Path) -> None:
    """A request to a port of Spark that sends it on to HTTPS: the test can hear and read."""
    assert authority.exists()
    with listening("spark-app") as heard:
        run_in("spark-bridge", "curl", "-s", "-o", "/dev/null", f"http://spark-master:{REDIRECTING}/json/")
    assert {there[3] for there in heard.readable} == {REDIRECTING}


def test_secrets_are_in_files_only(work: Work) -> None:
    """No command line has them, and nothing that work has written."""
    assert work.day
    secrets = {line.split()[1] for line in run_in("spark-master", "cat", "/tls/secrets.conf").stdout.splitlines()}
    assert len(secrets) == 2
    lines = run_in("spark-master", "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout
    assert [secret for secret in secrets if secret in lines] == []
    for secret in secrets:
        found = run_in("spark-master", "grep", "-rl", "-e", secret, "/data", "/scratch", check=False)
        assert found.stdout == "", secret[:4]


def test_certificates_are_made_anew(authority: Path) -> None:
    """By the same authority, so that who trusts it need not learn of it.

    Jobs run and telemetry arrives before the restart, while only drivers have the new ones, and after it.
    """
    before = run_in("kafka", "cat", "/tls/certificate.pem").stdout
    compose("run", "--rm", "certificates", "--rotate", file=FILE)
    assert run_in("kafka", "cat", "/tls/certificate.pem").stdout != before
    assert run_in("kafka", "cat", "/tls/ca.pem").stdout == authority.read_text(encoding="ascii")
    a_day_is_seen("2024-01-02")
    assert unwell(checks(authority)) == {}
    compose("restart", file=FILE)
    poll_until(lambda: unwell(checks(authority)) == {}, lambda: unwell(checks(authority)), seconds=RESTART_SECONDS)
    assert checks(authority)["spark_master"]["finding"].startswith("2 alive workers")
    a_day_is_seen("2024-01-03")


def a_day_is_seen(day: str) -> None:
    """It ends right, and the spans of its tasks, which the bridge sends, arrive."""
    [run] = records(run_in("spark-master", "run_etl.sh", day, "customers", "--json").stdout)
    assert run["outcome"] == "succeeded"
    url = f"https://jaeger:16686/api/traces/{run['trace_id']}"
    names = ["curl", "-sS", url]
    poll_until(lambda: '"operationName":"task' in run_in("spark-master", *names).stdout, f"tasks in the trace of {day}")
