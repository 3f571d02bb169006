"""Certificates that have expired, are those of another host, or are not to be trusted are told from good ones."""

import http.server
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate
from pyspark.sql import SparkSession

from spark_app.doctor.certificates import certificates_health
from spark_app.doctor.checks import check_certificates
from spark_app.errors import MachineError
from spark_app.settings import Backends
from tests.certificates import Authority
from tests.receivers import dead_port

PASSWORD: Final = "s"
"""Of key stores of Java."""


class _Greeted(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        """Waits for the client to leave."""
        self.request.recv(1)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients that refuse a certificate break off."""


@contextmanager
def serving(certificate: Path | ssl.SSLContext | None) -> Iterator[int]:
    """The port of a server with a certificate, or without TLS."""
    with _Server(("127.0.0.1", 0), _Greeted) as server:
        if certificate:
            context = certificate if isinstance(certificate, ssl.SSLContext) else context_of(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def context_of(certificate: Path) -> ssl.SSLContext:
    """The settings of a server with a certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


@contextmanager
def java_serving(spark: SparkSession, *, key: Path, chain: Path) -> Iterator[int]:
    """The port of a server of Java that has the key of one certificate and shows another one."""
    gateway: Any = spark.sparkContext._gateway
    java = gateway.jvm
    password = gateway.new_array(java.char, 1)
    password[0] = PASSWORD
    stores = [java.java.security.KeyStore.getInstance("PKCS12") for _ in (key, chain)]
    for store, file in zip(stores, (key, chain), strict=True):
        store.load(java.java.io.ByteArrayInputStream(pkcs12_of(file)), password)
    stores[1].setKeyEntry(
        "spark", stores[0].getKey("spark", password), password, stores[1].getCertificateChain("spark")
    )
    keys = java.javax.net.ssl.KeyManagerFactory.getInstance("SunX509")
    keys.init(stores[1], password)
    context = java.javax.net.ssl.SSLContext.getInstance("TLS")
    context.init(keys.getKeyManagers(), None, None)
    https = java.com.sun.net.httpserver
    server = https.HttpsServer.create(java.java.net.InetSocketAddress("127.0.0.1", 0), 0)
    server.setHttpsConfigurator(https.HttpsConfigurator(context))
    server.start()
    yield server.getAddress().getPort()
    server.stop(0)


def pkcs12_of(file: Path) -> bytes:
    """A key store with the key and the certificate in a file."""
    key, certificate = load_pem_private_key(file.read_bytes(), None), load_pem_x509_certificate(file.read_bytes())
    secret = BestAvailableEncryption(PASSWORD.encode())
    return serialize_key_and_certificates(b"spark", key, certificate, None, secret)  # type: ignore[arg-type]


def backends(*, kafka: int | None = None, **ports: int) -> Backends:
    """Components at ports of this machine, asked by HTTPS; the others are left out."""
    urls: dict[str, str | None] = dict.fromkeys(Backends.model_fields)
    urls |= {name: f"https://127.0.0.1:{port}" for name, port in ports.items()}
    return Backends.model_validate(urls | {"kafka": f"127.0.0.1:{kafka}" if kafka else None})


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """One that this machine trusts."""
    trusted = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted.file))
    return trusted


def test_the_first_to_end_is_named(authority: Authority) -> None:
    """Of all that answer, Kafka among them."""
    with ExitStack() as stack:
        jaeger, kafka = (stack.enter_context(serving(authority.certificate(days=days))) for days in (90.5, 40.5))
        found = certificates_health(backends(jaeger=jaeger, kafka=kafka, reports=dead_port()))
    assert found == "2 certificates; the first to end, of kafka, is good for 40 days"


@pytest.mark.parametrize(
    ("address", "days", "problem"),
    [
        ("127.0.0.1", -1, "jaeger: its certificate has expired"),
        ("127.0.0.1", 29.2, "jaeger: its certificate ends in 29 days"),
        ("127.0.0.2", 90, "jaeger: its certificate is that of another host, and not of 127.0.0.1"),
    ],
)
def test_what_is_wrong_is_named(authority: Authority, address: str, days: float, problem: str) -> None:
    """With the component that has it; good ones are not mentioned."""
    with ExitStack() as stack:
        files = (authority.certificate(address=address, days=days), authority.certificate())
        jaeger, reports = (stack.enter_context(serving(file)) for file in files)
        with pytest.raises(MachineError, match=f"^{problem}$"):
            certificates_health(backends(jaeger=jaeger, reports=reports))


def test_an_authority_of_somebody_else_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    """The message says what to set."""
    (tmp_path / "other").mkdir()
    assert authority.file.exists()
    with (
        serving(Authority(tmp_path / "other").certificate()) as port,
        pytest.raises(MachineError, match=r"^jaeger: .* authority that is not trusted here: .*SSL_CERT_FILE"),
    ):
        certificates_health(backends(jaeger=port))


def test_an_authority_that_was_made_anew_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    """It has the name of the one that is."""
    (tmp_path / "other" / tmp_path.name).mkdir(parents=True)
    another = Authority(tmp_path / "other" / tmp_path.name)
    assert authority.file.exists()
    with (
        serving(another.certificate()) as port,
        pytest.raises(MachineError, match=r"^jaeger: .* authority that is not trusted here: "),
    ):
        certificates_health(backends(jaeger=port))


def test_a_key_of_another_certificate_is_named(authority: Authority, spark: SparkSession) -> None:
    """Java serves it, as it does Spark's pages: its key stores do not compare the two."""
    with (
        java_serving(spark, key=authority.certificate(days=91), chain=authority.certificate()) as port,
        pytest.raises(MachineError, match=r"^spark_master: its key is not that of its certificate$"),
    ):
        certificates_health(backends(spark_master=port))


def test_a_server_that_refuses_is_not_one_without_tls(authority: Authority) -> None:
    """It asks for a certificate of the client, say."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.certificate())
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    with (
        serving(context) as port,
        pytest.raises(MachineError, match=r"^jaeger: it refuses the connection: \w*ALERT_HANDSHAKE_FAILURE$"),
    ):
        certificates_health(backends(jaeger=port))


def test_a_port_without_tls_is_named(authority: Authority) -> None:
    """A server that answers in plain text; one that does not answer, as Kafka does, may as well be starting."""
    with (
        serving(authority.certificate()) as jaeger,
        serving(None) as kafka,
        http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as plain,
    ):
        threading.Thread(target=plain.handle_request, daemon=True).start()
        with pytest.raises(MachineError) as problem:
            certificates_health(backends(jaeger=jaeger, reports=plain.server_port, kafka=kafka))
    assert str(problem.value) == (
        f"reports: port {plain.server_port} has no TLS; "
        "kafka: it ends the connection before it shows a certificate: it is starting, or has no TLS"
    )


def test_a_stack_without_tls_has_none() -> None:
    """Nothing is asked."""
    assert certificates_health(Backends.model_validate(dict.fromkeys(Backends.model_fields))) is None


def test_doctor_has_a_line_for_them(authority: Authority) -> None:
    """With how to make others where one is wrong; a stack without TLS has no such line."""
    with serving(authority.certificate(days=-1)) as port:
        [check] = check_certificates(backends(jaeger=port))
    assert (check.component, check.state, check.finding) == (
        "certificates",
        "down",
        "jaeger: its certificate has expired",
    )
    assert "certificates --rotate" in str(check.look_at)
    with serving(authority.certificate()) as port:
        assert [check.state for check in check_certificates(backends(jaeger=port))] == ["ok"]
    assert check_certificates(backends()) == []
