"""With certificates in the chart, nothing of it answers in plain text, and applications are seen as without."""

import json
import secrets
import shutil
import ssl
from collections.abc import Iterator
from contextlib import closing
from http.client import BadStatusLine, HTTPConnection
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
import yaml

from tests.certificates import Authority
from tests.kubernetes.cluster import CHART, Namespace, load_images, rendered, run
from tests.kubernetes.test_applications import BUCKET, HERE, SEEN_SECONDS, SETTINGS, STORAGE, fill, has_ended, traces
from tests.polling import poll_until

CERT_MANAGER: Final = "github.com/cert-manager/cert-manager@v1.18.2"
"""The release of cert-manager whose resource definition a cluster gets that has none."""
KIND: Final = "certificates.cert-manager.io"
SERVERS: Final = ("collector", "bridge")
TLS: Final = ("--set", "tls.enabled=true", "--set", "tls.secret=tls", "--set", "tls.spark=true")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who has signed the certificate of the release."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def namespace(authority: Authority) -> Iterator[Namespace]:
    """A namespace with the chart, a Secret with its certificate, and its back ends, which have no TLS."""
    load_images()
    namespace = Namespace(f"secured-{secrets.token_hex(3)}")
    namespace.create("restricted")
    pair = authority.certificate(names=[f"seen-spark-app-{server}" for server in SERVERS])
    files = (f"--from-file=tls.crt={pair}", f"--from-file=tls.key={pair}", f"--from-file=ca.crt={authority.file}")
    try:
        namespace.kubectl("create", "secret", "generic", "tls", *files)
        namespace.kubectl("apply", "--filename", HERE / "backends.yaml")
        run("helm", "install", "seen", CHART, "--namespace", namespace.name, *SETTINGS, *TLS)
        namespace.wait("deployments")
        with namespace.forwarded("service/s3", 7070) as endpoint:
            fill(endpoint)
        namespace.wait("statefulsets")
        yield namespace
    finally:
        namespace.delete()


def test_clients_of_the_release_trust_it(namespace: Namespace) -> None:
    """By the names of its Services; `helm test` sends telemetry, and asks the bridge."""
    run("helm", "test", "seen", "--namespace", namespace.name, "--timeout=120s")


def status(url: str, context: ssl.SSLContext) -> int:
    """The status of an answer, whatever it is."""
    try:
        with urlopen(url, timeout=30, context=context) as answer:
            code: int = answer.status
            return code
    except HTTPError as answer:
        with answer:
            return answer.code


def plain_status(address: str, path: str) -> int | None:
    """The status of an answer without TLS; None if there is no answer."""
    with closing(HTTPConnection(address.removeprefix("http://"), timeout=30)) as connection:
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (ConnectionError, BadStatusLine):
            return None


@pytest.mark.parametrize(
    ("server", "port", "path"),
    [("collector", 4318, "/v1/traces"), ("collector", 13133, "/health"), ("bridge", 9464, "/")],
)
def test_only_tls_is_answered(namespace: Namespace, authority: Authority, server: str, port: int, path: str) -> None:
    """A plain client is refused, and one that does not know the authority refuses the server."""
    with namespace.forwarded(f"statefulset/seen-spark-app-{server}", port) as address:
        assert plain_status(address, path) in {None, 400}
    with namespace.forwarded(f"statefulset/seen-spark-app-{server}", port) as address:
        secure = address.replace("http://", "https://") + path
        with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urlopen(secure, timeout=30, context=ssl.create_default_context())
        assert status(secure, ssl.create_default_context(cafile=str(authority.file))) < 500


def test_nothing_listens_without_tls(namespace: Namespace) -> None:
    """The collector does not serve its own metrics, since that port has none."""
    with namespace.forwarded("statefulset/seen-spark-app-collector", 8888) as address:
        assert plain_status(address, "/metrics") is None


def test_an_application_is_seen_whose_processes_prove_who_they_are(namespace: Namespace) -> None:
    """By the properties that operators get: its driver and executors authenticate each other and encrypt."""
    options = ("--namespace", namespace.name, "--set", "spark.operator.namespace=operator")
    objects = yaml.safe_load_all(rendered("seen", *SETTINGS, *TLS, *options))
    [defaults] = [each["data"]["spark-defaults.conf"] for each in objects if "defaults" in each["metadata"]["name"]]
    properties = dict(line.split(maxsplit=1) for line in defaults.splitlines() if line)
    assert properties["spark.authenticate"] == properties["spark.network.crypto.enabled"] == "true"
    assert not [name for name in properties if name.startswith("spark.ssl")]
    confs = [f"{name}={value}" for name, value in properties.items()]
    namespace.submit(f"s3a://{BUCKET}/flights.py", *(conf for conf in confs if conf not in STORAGE), *STORAGE)
    with namespace.forwarded("service/jaeger", 16686) as jaeger:
        poll_until(lambda: has_ended(traces(jaeger)), "Jaeger has no span of the application", seconds=SEEN_SECONDS)


def test_cert_manager_would_take_the_certificate(tmp_path: Path) -> None:
    """Its resource definition, by the API server; no cert-manager runs here."""
    has_kind = KIND in run("kubectl", "get", "customresourcedefinitions", "--output=name")
    assert shutil.which("go"), f"Go is not there to get {CERT_MANAGER}"
    folder = Path(json.loads(run("go", "mod", "download", "-json", CERT_MANAGER))["Dir"])
    kind = yaml.safe_load((folder / "deploy" / "crds" / "crd-certificates.yaml").read_text(encoding="utf-8"))
    del kind["metadata"]["labels"]  # they have placeholders of its chart
    definition = tmp_path / "kind.yaml"
    definition.write_text(yaml.safe_dump(kind), encoding="utf-8")
    settings = ("tls.enabled=true", "tls.certManager.enabled=true", "tls.certManager.issuer.name=authority")
    options = [word for setting in settings for word in ("--set", setting)]
    manifest = tmp_path / "certificate.yaml"
    manifest.write_text(
        rendered("seen", *SETTINGS, *options, "--show-only", "templates/certificate.yaml"), encoding="utf-8"
    )
    try:
        if not has_kind:
            run("kubectl", "apply", "--server-side", "--filename", definition)
            run("kubectl", "wait", "--for=condition=Established", f"customresourcedefinition/{KIND}")
        run("kubectl", "apply", "--dry-run=server", "--validate=strict", "--filename", manifest)
    finally:
        if not has_kind:
            run("kubectl", "delete", "customresourcedefinition", KIND)
