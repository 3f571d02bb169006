"""An upgrade loses no data, nor does an uninstallation: claims stay, and the next release goes on with them."""

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.cluster import CHART, ROOT, Namespace, load_images, run
from tests.kubernetes.test_applications import BUCKET, HERE, SEEN_SECONDS, SETTINGS, client, fill
from tests.kubernetes.volumes import volumes
from tests.polling import poll_until

FIRST, SECOND = (ROOT / "tests" / "eventlogs" / version / "rolled-zstd" for version in ("4.2.0", "4.1.4"))
"""Folders with a recorded log each."""
CLAIMS: Final = {
    "state-seen-spark-app-bridge-0": "1Gi",
    "data-seen-spark-app-reports-0": "2Gi",
    "queues-seen-spark-app-collector-0": "1Gi",
}


@pytest.fixture
def namespace(tmp_path: Path) -> Iterator[Namespace]:
    """A new namespace with an S3 server that has the first log, Jaeger, and volumes for the claims of the chart."""
    load_images()
    namespace = Namespace(f"kept-{secrets.token_hex(3)}")
    namespace.create("restricted")
    try:
        namespace.kubectl("apply", "--filename", HERE / "backends.yaml")
        namespace.wait("deployments")
        with namespace.forwarded("service/s3", 7070) as endpoint:
            fill(endpoint)
        upload(namespace, FIRST)
        with volumes(namespace, CLAIMS, tmp_path):
            try:
                yield namespace
            finally:
                namespace.kubectl("delete", "statefulsets,persistentvolumeclaims", "--all", "--timeout=60s")
    finally:
        namespace.delete()


def upload(namespace: Namespace, folder: Path) -> None:
    """Copies an event log to where applications write theirs."""
    with namespace.forwarded("service/s3", 7070) as endpoint:
        for file in sorted(folder.glob("*/*")):
            key = f"events/{file.parent.name}/{file.name}"
            client(endpoint).put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())


def helm(namespace: Namespace, verb: str, *settings: str) -> None:
    """Installs or upgrades the release with claims, and waits for its pods."""
    kept = [f"{each}.persistence.enabled=true" for each in ("bridge", "reports", "collector")]
    classes = [f"{each}.persistence.storageClass={namespace.name}" for each in ("bridge", "reports", "collector")]
    options = [word for setting in (*kept, *classes, *settings) for word in ("--set", setting)]
    run("helm", verb, "seen", CHART, "--namespace", namespace.name, *SETTINGS, *options, "--wait", "--timeout=180s")


def reports(namespace: Namespace) -> dict[str, str]:
    """When each report was written, by its file."""
    find = ("find", "/data", "-name", "*.html", "!", "-name", "index.html", "-printf", "%f %T@\\n")
    lines = namespace.kubectl("exec", "seen-spark-app-reports-0", "--", *find).splitlines()
    return dict(line.split() for line in lines)


def events_read(namespace: Namespace) -> int:
    """How many events the bridge has read since its pod started."""
    command = ("exec", "seen-spark-app-bridge-0", "--", "curl", "-fsS", "http://localhost:9464/metrics")
    found = re.search(r"^spark_bridge_events_total(?:\{.*\})? (\S+)$", namespace.kubectl(*command), re.MULTILINE)
    return int(float(found[1])) if found else 0


def claims(namespace: Namespace) -> dict[str, str]:
    """The volume of each claim."""
    columns = "--output=jsonpath={range .items[*]}{.metadata.name} {.spec.volumeName}{'\\n'}{end}"
    return dict(line.split() for line in namespace.kubectl("get", "persistentvolumeclaims", columns).splitlines())


def wait_for(namespace: Namespace, logs: int, events: int) -> None:
    """Waits for a report about each log, and for the bridge to have read events."""
    poll_until(lambda: len(reports(namespace)) == logs, lambda: f"reports: {reports(namespace)}", seconds=SEEN_SECONDS)
    poll_until(
        lambda: events_read(namespace) >= events, lambda: f"{events_read(namespace)} events", seconds=SEEN_SECONDS
    )


def test_the_next_pods_and_the_next_release_go_on_where_the_last_were(namespace: Namespace) -> None:
    """No report is written twice, and no event is read twice; `helm test` succeeds with each."""
    helm(namespace, "install")
    wait_for(namespace, logs=1, events=1)
    first, of_first, bound = reports(namespace), events_read(namespace), claims(namespace)
    assert set(bound) == set(CLAIMS)

    helm(namespace, "upgrade", "reports.days=31", "environment=upgraded", "collector.verbosity=normal")
    run("helm", "test", "seen", "--namespace", namespace.name, "--timeout=120s")
    assert reports(namespace) == first

    run("helm", "uninstall", "seen", "--namespace", namespace.name, "--wait", "--timeout=180s")
    assert claims(namespace) == bound
    helm(namespace, "install")
    upload(namespace, SECOND)
    wait_for(namespace, logs=2, events=1)
    assert first.items() < reports(namespace).items()
    assert events_read(namespace) <= of_first  # the second log has no more events than the first
