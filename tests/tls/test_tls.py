"""The stack with TLS: jobs run, telemetry arrives, and who listens to the network can read nothing: `make e2e-tls`."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.stack import ADVICE, ROOT, START, compose, environment, records, run_in
from tests.polling import poll_until
from tests.tls.listening import CLIENT_HELLO, Heard, listening

FILE: Final = "docker-compose.tls.yml"
PROJECT: Final = "spark-app-tls"
TLS_PORTS: Final = {4318, 8088, 8480, 8481, 8482, 9090, 9093, 9115, 9200, 9464, 13133, 16686, 18480, 19092}
"""Ports that are asked while a job runs; all but those on which Spark's processes talk to each other."""
SPARK_PORT: Final = 7077
REDIRECTING: Final = 8080
RESTART_SECONDS: Final = 300
PROGRAM: Final = """
from pyspark.sql import SparkSession
from spark_app.settings import load_settings
from spark_app.spark.kafka import source_options

spark = SparkSession.builder.appName("records").getOrCreate()
kafka = source_options(load_settings().kafka)
rows = spark.read.format("kafka").options(**kafka).option("subscribe", "user_events").load()
print("sent", rows.repartition(4).groupBy("partition").count().agg({"count": "sum"}).first()[0] > 0)
"""


@dataclass(frozen=True)
class Work:
    """What was done while somebody listened: the records of a day, and what a job on Kafka and `doctor` said."""

    heard: Heard
    day: list[dict[str, Any]]
    printed: str
    doctor: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The certificate of the authority of a stack that runs; all of the stack is removed in the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPOSE_PROJECT_NAME", PROJECT)
        done = start()
        if advice := ADVICE.search(done.stderr):
            done = start(*advice[1].split())
        assert done.returncode == 0, done.stderr[-3000:]
        assert "https://localhost:9090" in done.stdout
        file = tmp_path_factory.mktemp("tls") / "ca.pem"
        compose("cp", "certificates:/certificates/authority/ca.pem", str(file), file=FILE)
        yield file
        compose("down", "--volumes", file=FILE)


def start(*options: str) -> subprocess.CompletedProcess[str]:
    """Starts the stack."""
    command = [START, "--file", FILE, *options]
    return subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def work(authority: Path) -> Work:
    """A day, a job that reads Kafka with tasks that shuffle, and `doctor`, while somebody listens."""
    with listening("spark-app") as heard:
        day = records(run_in("spark-master", "run_etl.sh", "2024-01-01", "customers", "--json").stdout)
        run_in("spark-master", "spark-app", "data", "stream", "--rate", "20", "--for", "5s")
        run_in("spark-master", "sh", "-c", f"cat >/dev/shm/job.py <<'END'\n{PROGRAM}\nEND")
        printed = run_in("spark-master", "spark-submit", "/dev/shm/job.py").stdout
        doctor = checks(authority)
    return Work(heard, day, printed, doctor)


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
    assert work.printed.strip() == "sent True"
    assert unwell(work.doctor) == {}
    assert [work.doctor[part]["state"] for part in ("trace", "metric", "log")] == ["ok"] * 3
    assert re.match(r"\d+ certificates; ", work.doctor["certificates"]["finding"])


def test_nothing_can_be_read(work: Work, request: pytest.FixtureRequest) -> None:
    """No request, no message of Spark, no telemetry and no row, on any port; and every port was heard."""
    assert work.heard.readable == {}
    assert TLS_PORTS - set(work.heard.sizes) == set()
    assert work.heard.sizes[SPARK_PORT] > 1000
    out = request.config.get_terminal_writer()
    out.line(f"heard {sum(work.heard.sizes.values()):,} bytes on {len(work.heard.sizes)} ports, and could read nothing")


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
    """By the same authority, so that who trusts it need not learn of it; after a restart all is as it was."""
    before = run_in("kafka", "cat", "/tls/certificate.pem").stdout
    compose("run", "--rm", "certificates", "--rotate", file=FILE)
    assert run_in("kafka", "cat", "/tls/certificate.pem").stdout != before
    assert run_in("kafka", "cat", "/tls/ca.pem").stdout == authority.read_text(encoding="ascii")
    compose("restart", file=FILE)
    poll_until(lambda: unwell(checks(authority)) == {}, lambda: unwell(checks(authority)), seconds=RESTART_SECONDS)
    assert checks(authority)["spark_master"]["finding"].startswith("2 alive workers")
