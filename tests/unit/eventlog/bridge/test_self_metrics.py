"""A bridge serves its own metrics and its health."""

import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from spark_app.errors import MachineError
from spark_app.eventlog.bridge.log_processor import ReadCounts
from spark_app.eventlog.bridge.self_metrics import ALIVE_SECONDS, BridgeStatus, SelfMetrics
from spark_app.vocabulary.prometheus_names import series
from spark_app.vocabulary.spark_names import BRIDGE_METRICS
from tests.certificates import Authority
from tests.polling import poll_until


@pytest.fixture
def served(tmp_path: Path) -> Iterator[SelfMetrics]:
    """A bridge that has read something, on a free port."""
    read = ReadCounts(events=7, unreadable_lines=1, spans_suppressed=4)
    status = BridgeStatus(read=read, spans_dropped=2, lag_seconds=1.5, metric_failures=3)
    server = SelfMetrics(status, tmp_path, host="127.0.0.1", port=0)
    yield server
    server.close()


def asked(served: SelfMetrics, path: str) -> tuple[int, str]:
    """The status and the text of an answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{served.port}{path}") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_figures_are_what_prometheus_reads(served: SelfMetrics) -> None:
    """They are those of the catalogue, each with its value; only the signal is a label."""
    status, text = asked(served, "/metrics")
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    values = {(sample.name, *sample.labels.values()): sample.value for sample in samples}
    assert status == 200
    assert values["spark_bridge_events_total",] == 7
    assert values["spark_bridge_unreadable_lines_total",] == 1
    assert values["spark_bridge_spans_dropped_total",] == 2
    assert values["spark_bridge_spans_suppressed_total",] == 4
    assert values["spark_bridge_lag_seconds",] == 1.5
    assert values["spark_bridge_export_failures_total", "metrics"] == 3
    assert values["spark_bridge_volume_free_bytes",] > 0
    assert {sample.name for sample in samples} == {series(metric) for metric in BRIDGE_METRICS}
    assert {name for sample in samples for name in sample.labels} == {"signal"}


def test_it_is_healthy_as_long_as_its_loop_goes_round(served: SelfMetrics) -> None:
    """A loop that hangs answers with status 503."""
    assert asked(served, "/health") == (200, "alive\n")
    served.status.is_standby = True
    assert asked(served, "/health") == (200, "standby\n")
    served.status.last_heartbeat = time.monotonic() - ALIVE_SECONDS - 1
    assert asked(served, "/health") == (503, "the main loop of the bridge hangs\n")
    assert f"spark_bridge_silence_seconds {ALIVE_SECONDS + 1:.0f}" in asked(served, "/metrics")[1]
    assert asked(served, "/else")[0] == 404


def test_a_port_that_is_taken_is_named(served: SelfMetrics, tmp_path: Path) -> None:
    """With the options that choose another."""
    with pytest.raises(MachineError, match=rf"cannot listen on 127\.0\.0\.1:{served.port}: .*--metrics-port"):
        SelfMetrics(BridgeStatus(), tmp_path, host="127.0.0.1", port=served.port)


def test_it_is_served_by_https_with_a_certificate(tmp_path: Path) -> None:
    """A client that does not finish its handshake holds up nobody."""
    authority = Authority(tmp_path)
    certificate = authority.certificate()
    served = SelfMetrics(BridgeStatus(), tmp_path, host="127.0.0.1", port=0, certificate=certificate)
    context = ssl.create_default_context(cafile=authority.file)
    with socket.create_connection(("127.0.0.1", served.port)):
        url = f"https://127.0.0.1:{served.port}/health"
        assert urllib.request.urlopen(url, context=context).read() == b"alive\n"
    served.close()


def store(pair: Path, folder: Path) -> Path:
    """Stores a key and its certificate as a Secret is mounted: each in a file; returns that of the certificate."""
    key, begin, certificate = pair.read_text(encoding="utf-8").partition("-----BEGIN CERTIFICATE-----")
    (folder / "key.pem").write_text(key, encoding="utf-8")
    (folder / "certificate.pem").write_text(begin + certificate, encoding="utf-8")
    return folder / "certificate.pem"


def test_a_renewed_certificate_is_used_by_later_connections(tmp_path: Path) -> None:
    """Also while its key is not there yet: then the old one is used."""
    (tmp_path / "mounted").mkdir()
    authority = Authority(tmp_path)
    mounted = store(authority.certificate(days=1), tmp_path / "mounted")
    served = SelfMetrics(BridgeStatus(), tmp_path, host="127.0.0.1", port=0, certificate=mounted)
    address = ("127.0.0.1", served.port)
    first, key = ssl.get_server_certificate(address), (tmp_path / "mounted" / "key.pem").read_text(encoding="utf-8")
    store(authority.certificate(days=2), tmp_path / "mounted")
    renewed = (tmp_path / "mounted" / "key.pem").read_text(encoding="utf-8")
    (tmp_path / "mounted" / "key.pem").write_text(key, encoding="utf-8")
    assert ssl.get_server_certificate(address) == first
    (tmp_path / "mounted" / "key.pem").write_text(renewed, encoding="utf-8")
    poll_until(lambda: ssl.get_server_certificate(address) != first, "the old certificate is served", seconds=20)
    served.close()


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    """Before the bridge listens."""
    (tmp_path / "no.pem").write_text("none", encoding="utf-8")
    for file, why in (("no.pem", "it needs a key and its certificate"), ("absent.pem", "No such file")):
        with pytest.raises(MachineError, match=rf"cannot serve by HTTPS with .*{file}: {why}"):
            SelfMetrics(BridgeStatus(), tmp_path, host="127.0.0.1", port=0, certificate=tmp_path / file)


def test_a_folder_that_is_not_there_has_no_volume(tmp_path: Path) -> None:
    """Its figures are absent, the others are there."""
    served = SelfMetrics(BridgeStatus(), tmp_path / "none", host="127.0.0.1", port=0)
    _, text = asked(served, "/metrics")
    served.close()
    assert "volume" not in text
    assert "spark_bridge_lag_seconds 0.0" in text
