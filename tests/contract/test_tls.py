"""The overlay with TLS covers every service, changes nothing but HTTPS, and makes good certificates."""

import importlib
import os
import re
import socket
import ssl
import stat
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.certificates import Authority
from tests.contract.test_compose import SERVICES, ZOOKEEPERS, parsed
from tests.contract.violations import violations

ROOT: Final = Path(__file__).resolve().parents[2]
OVERLAY: Final = parsed("compose/tls.yml")
SCRIPT: Final = ROOT / "config" / "tls" / "make_certificates.sh"
FOLDERS: Final = {volume.split(":")[1]: volume for volume in OVERLAY["services"]["certificates"]["volumes"][1:]}
PUSHING: Final = {"otel-collector", "jaeger"}
"""Who pushes its own metrics: the probe says whether it answers."""


def test_every_service_has_a_certificate_or_trusts_one() -> None:
    """But `owner`, which has no network, `runbook`, which is for the back ends alone, and what other stacks add.

    Each waits until certificates are there, or for one that does.
    """

    def rule(name: str) -> Iterator[str]:
        service = OVERLAY["services"].get(name, {})
        if not [volume for volume in service.get("volumes", []) if re.fullmatch(r"tls-[\w-]+:\S*/tls:ro", volume)]:
            yield "it has no volume of certificates"
        if "depends_on" not in service and not name.endswith("-setup"):
            yield "it may start before there are certificates"

    assert violations(rule, set(SERVICES) - set(ZOOKEEPERS) - {"owner", "runbook", "s3"}) == []


def test_nothing_is_asked_without_tls() -> None:
    """Neither by healthchecks nor by any address."""
    files = (
        "compose/tls.yml",
        "config/otel/collector-tls.yaml",
        "config/jaeger-tls.yaml",
        "prometheus/tls/prometheus.yml",
    )
    assert [file for file in files if "http://" in (ROOT / file).read_text(encoding="utf-8")] == []


def test_who_makes_certificates_can_do_nothing_else() -> None:
    """It is root, without a network and with one capability, and nobody else sees the key of the authority."""
    service = OVERLAY["services"]["certificates"]
    assert (service["user"], service["network_mode"], service["read_only"]) == ("0:0", "none", True)
    assert (service["cap_drop"], service["cap_add"]) == (["ALL"], ["CHOWN"])
    assert set(service["deploy"]["resources"]["limits"]) == {"memory", "cpus", "pids"}
    volumes = [volume for each in OVERLAY["services"].values() for volume in each.get("volumes", [])]
    assert [volume for volume in volumes if volume.startswith("tls-authority:")] == [
        "tls-authority:/certificates/authority"
    ]


def test_ports_are_those_of_the_stack_on_the_loopback() -> None:
    """Those of Spark's pages lead to the port with HTTPS."""

    def rule(name: str) -> Iterator[str]:
        ports = OVERLAY["services"][name].get("ports", [])
        for mine, default in zip(ports, SERVICES[name]["ports"] if ports else [], strict=True):
            published, _, target = mine.rpartition(":")
            plain = re.search(r"(\d+)\}?$", default)
            if not default.startswith(published) or not plain or int(target) != int(plain[1]) + 400:
                yield f"{mine} instead of {default}"

    assert violations(rule, set(OVERLAY["services"]) - {"certificates"}) == []


def https(scraped: dict[str, Any]) -> dict[str, Any]:
    """A job of Prometheus as it is with TLS."""
    job: dict[str, Any] = scraped | {"scheme": "https"}
    if job["job_name"] in PUSHING:
        [asked] = job["static_configs"]
        job["metrics_path"] = f"/{job['job_name']}.txt"
        labels = {"instance": asked["targets"][0]}
        job["static_configs"] = [{"targets": ["otel-collector-ready:9115"], "labels": labels}]
    if job["job_name"] == "spark-worker":
        job["static_configs"] = [{"targets": ["spark-worker-1:8481", "spark-worker-2:8482"]}]
    return job


def read(file: Path) -> Any:
    """What a file of YAML has."""
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def test_prometheus_does_the_same_by_https() -> None:
    """Whoever changes one file changes the other."""
    folder = ROOT / "prometheus"
    plain, secure = read(folder / "prometheus.yml"), read(folder / "tls" / "prometheus.yml")
    labels = plain["global"]["external_labels"]
    plain["global"]["external_labels"] = {name: url.replace("http:", "https:") for name, url in labels.items()}
    plain["alerting"]["alertmanagers"] = [each | {"scheme": "https"} for each in plain["alerting"]["alertmanagers"]]
    plain["scrape_configs"] = list(map(https, plain["scrape_configs"]))
    assert secure == plain
    plain, secure = read(folder / "scrape" / "spark.yml"), read(folder / "tls" / "scrape" / "spark.yml")
    assert secure["scrape_configs"] == list(map(https, plain["scrape_configs"]))


def test_the_probe_says_who_answers_of_those_that_push() -> None:
    """Prometheus asks for a file of each."""
    names = {each.partition("=")[0] for each in OVERLAY["services"]["otel-collector-ready"]["command"][2:]}
    full = parsed("compose/watch-spark-and-kafka.yml")["services"]["otel-collector-ready"]["command"][2:]
    assert names == {each.partition("=")[0] for each in full} | PUSHING


def test_commands_of_the_runbook_are_right_with_tls() -> None:
    """They ask by the scheme of the stack, and start no container of another stack in the place of one of this."""
    text = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    assert re.findall(r"curl .*http://localhost.*|docker compose -f \S+", text) == []
    assert 'curl -s "${STACK_SCHEME:-http}://localhost:8080/json/"' in text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The volumes of the overlay, and a `chown` that needs no root."""
    for each in FOLDERS:
        (tmp_path / Path(each).name).mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "chown").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "bin" / "chown").chmod(0o755)
    return tmp_path


def make(folder: Path, *options: str) -> str:
    """Makes certificates; what it says."""
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    variables = os.environ | {"CERTIFICATES": str(folder), "PATH": path, "TLS_NAMES": "stack.example 10.0.0.7"}
    command = ["bash", str(SCRIPT), *options]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_certificates_are_made_once_and_anew_on_demand(folder: Path) -> None:
    """By one authority; keys and secrets are readable by their user only."""
    services = {Path(each).name for each in FOLDERS} - {"authority"}
    assert make(folder).count("made the certificate of") == len(services)
    assert make(folder) == ""
    authority = (folder / "authority" / "ca.pem").read_bytes()
    old = {name: (folder / name / "key.pem").read_bytes() for name in services}
    secrets = secrets_of_spark(folder)
    make(folder, "--rotate")
    assert (folder / "authority" / "ca.pem").read_bytes() == authority
    assert [name for name, key in old.items() if (folder / name / "key.pem").read_bytes() == key] == []
    assert secrets_of_spark(folder)["spark.authenticate.secret"] != secrets["spark.authenticate.secret"]
    public = {"ca.pem", "certificate.pem"}
    files = [file for name in services for file in (folder / name).iterdir() if file.name not in public]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o400}
    assert stat.S_IMODE((folder / "authority" / "ca.key").stat().st_mode) == 0o600


def secrets_of_spark(folder: Path) -> dict[str, str]:
    """Spark properties that are secret."""
    lines = (folder / "spark" / "secrets.conf").read_text(encoding="utf-8").splitlines()
    return {name: value for name, _, value in (line.partition(" ") for line in lines)}


def test_drivers_of_a_master_that_runs_open_a_key_store_that_is_made_anew(folder: Path) -> None:
    """By the password that its container has read at its start; a renewal without --rotate changes no secret."""
    make(folder)
    secrets = secrets_of_spark(folder)
    (folder / "spark" / "certificate.pem").unlink()
    assert make(folder).startswith("made the certificate of spark-master ")
    assert secrets_of_spark(folder) == secrets
    make(folder, "--rotate")
    password = secrets["spark.ssl.keyStorePassword"]
    opened = [
        "openssl",
        "pkcs12",
        "-in",
        str(folder / "spark" / "keystore.p12"),
        "-passin",
        f"pass:{password}",
        "-noout",
    ]
    subprocess.run(opened, check=True, capture_output=True)


def test_a_certificate_is_of_its_service_and_of_this_machine(folder: Path) -> None:
    """A strict client trusts it."""
    make(folder)
    for name in ("DNS:kafka", "DNS:localhost", "IP Address:127.0.0.1", "DNS:stack.example", "IP Address:10.0.0.7"):
        command = ["openssl", "x509", "-in", str(folder / "kafka" / "certificate.pem"), "-noout", "-text"]
        assert name in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    authority = str(folder / "authority" / "ca.pem")
    verify = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", authority]
    subprocess.run([*verify, str(folder / "kafka" / "certificate.pem")], check=True, capture_output=True)


def test_a_folder_is_served_by_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not finish its handshake holds up nobody."""
    monkeypatch.syspath_prepend(str(ROOT / "config" / "tls"))
    serve_https = importlib.import_module("serve_https")
    (tmp_path / "page.txt").write_text("hello", encoding="utf-8")
    authority = Authority(tmp_path)
    with serve_https.server(0, str(tmp_path), str(authority.certificate())) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = ("127.0.0.1", server.server_address[1])
        with socket.create_connection(address):
            context = ssl.create_default_context(cafile=authority.file)
            url = f"https://127.0.0.1:{address[1]}/page.txt"
            assert urllib.request.urlopen(url, context=context).read() == b"hello"
        server.shutdown()
