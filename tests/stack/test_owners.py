"""Two clusters and two teams, one collector, Prometheus and Alertmanager: each team gets the alerts about its own."""

import json
import os
import re
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.integration.test_bridge import Running, bridge
from tests.polling import patience, poll_until
from tests.receivers import Receiver, receiver
from tests.stack.test_collector import Collector, collector, free_ports, is_open
from tests.unit.eventlog import log

ROOT: Final = Path(__file__).resolve().parents[2]
WINDOW: Final = "20s"
"""In place of the hour that alerts about findings look back, so that a test sees them resolve."""
BATCH_RUN: Final = """
import sys
from pathlib import Path
from spark_app.settings import Schedule
from spark_app.telemetry.run_identity import RunIdentity
from spark_app.telemetry.setup import start

folder, outcome, every = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
telemetry = start(service_version="1", environment="test", application="etl")
try:
    with telemetry.run(RunIdentity(folder.name, "0a1b2c3d4e5f", "etl.orders", "", folder, "etl")) as run:
        run.record_schedule(Schedule(every=every, grace=0, max_age=86400))
        if outcome == "fails":
            raise RuntimeError("as it is to")
except RuntimeError:
    pass
sys.exit(not telemetry.close())
"""
Alert = tuple[str, str, str | None, str | None, str | None]
"""Who got it, its name, its state, and the team and the cluster that it is about."""


class Webhooks:
    """The receivers of alerts, by the last part of their address."""

    def __init__(self) -> None:
        """Starts to listen."""
        self.alerts: list[Alert] = []
        hooks = self

        class Hook(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hooks.take(self.path.strip("/"), self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
                """Logs no requests."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, to: str, body: bytes) -> None:
        """Takes a notification."""
        for each in json.loads(body)["alerts"]:
            labels = each["labels"]
            self.alerts.append(
                (to, labels["alertname"], each["status"], labels.get("team"), labels.get("k8s_cluster_name"))
            )

    def wait(self, *alerts: Alert) -> None:
        """Waits until each of some alerts was received."""
        poll_until(lambda: set(alerts) <= set(self.alerts), lambda: (set(alerts) - set(self.alerts), self.alerts))


def documented_routes() -> dict[str, Any]:
    """The example of the runbook."""
    text = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(route:\n.*?)```", text, re.DOTALL)
    routes: dict[str, Any] = yaml.safe_load(block)
    return routes


@contextmanager
def process(folder: Path, port: int, *command: str) -> Iterator[None]:
    """A program that listens on a port."""
    with (folder / "log").open("a") as output, subprocess.Popen(command, stdout=output, stderr=output) as started:
        try:
            poll_until(lambda: is_open(port), lambda: (folder / "log").read_text(encoding="utf-8")[-2000:])
            yield
        finally:
            started.kill()


@contextmanager
def alertmanager(folder: Path, hooks: Webhooks) -> Iterator[int]:
    """Alertmanager with the routes of the runbook, which waits for nothing; yields its port."""
    folder.mkdir()
    port, config = free_ports(1)[0], documented_routes()
    config["route"] |= {"group_wait": "100ms", "group_interval": "1s"}
    text = yaml.safe_dump(config).replace("http://alerts.example", hooks.address)
    (folder / "alertmanager.yml").write_text(text, encoding="utf-8")
    options = [f"--config.file={folder}/alertmanager.yml", f"--storage.path={folder}", "--cluster.listen-address="]
    with process(folder, port, "alertmanager", *options, f"--web.listen-address=127.0.0.1:{port}"):
        yield port


@contextmanager
def prometheus(folder: Path, alertmanager: int) -> Iterator[str]:
    """Prometheus with the rules and the settings of the stack, which looks each second; yields its address."""
    (folder / "rules").mkdir(parents=True)
    for name in ("diagnoses", "pipelines", "schedule"):
        rules = (ROOT / "prometheus" / "rules" / f"{name}.yml").read_text(encoding="utf-8")
        (folder / "rules" / f"{name}.yml").write_text(rules.replace("[1h]", f"[{WINDOW}]"), encoding="utf-8")
    config = yaml.safe_load((ROOT / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] |= {"evaluation_interval": "1s"}
    config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]
    for part in ("scrape_configs", "scrape_config_files", "storage"):
        config.pop(part)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    port = free_ports(1)[0]
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    options += ["--web.enable-otlp-receiver", f"--web.listen-address=127.0.0.1:{port}"]
    with process(folder, port, "prometheus", *options):
        yield f"http://127.0.0.1:{port}"


class Fleet:
    """What two clusters send to."""

    def __init__(self, held: ExitStack, folder: Path) -> None:
        """Starts the programs."""
        self.hooks, self._folder = Webhooks(), folder
        self.traces: Receiver = held.enter_context(receiver())
        port = held.enter_context(alertmanager(folder / "alertmanager", self.hooks))
        self._prometheus = held.enter_context(prometheus(folder / "prometheus", port))
        (folder / "collector").mkdir()
        addresses = {"traces": self.traces.grpc_endpoint, "metrics": f"{self._prometheus}/api/v1/otlp"}
        self.collector: Collector = held.enter_context(collector(folder / "collector", **addresses))

    @contextmanager
    def bridge(self, machine: str, attributes: str = "") -> Iterator[tuple[Path, Running]]:
        """The bridge of a machine, and the folder that it follows."""
        folder = self._folder / machine / "logs"
        folder.mkdir(parents=True)
        variables = {"OTEL_RESOURCE_ATTRIBUTES": attributes}
        with bridge(folder, self.collector.otlp, variables=variables) as found:
            found.wait()
            yield folder, found

    def run(self, team: str, outcome: str, *, every: float) -> None:
        """A run of a pipeline of a team."""
        folder = self._folder / f"run-{team}-{outcome}"
        folder.mkdir()
        variables = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        variables |= {"OTEL_RESOURCE_ATTRIBUTES": f"team={team}", "OTEL_EXPORTER_OTLP_ENDPOINT": self.collector.otlp}
        variables |= {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        command = [sys.executable, "-c", BATCH_RUN, str(folder), outcome, str(every)]
        subprocess.run(command, env=variables, check=True, timeout=patience(120))

    def values(self, query: str) -> dict[tuple[str | None, ...], float]:
        """What Prometheus answers, by cluster and team."""
        asked = urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(f"{self._prometheus}/api/v1/query?{asked}", timeout=10) as answer:
            rows = json.load(answer)["data"]["result"]
        return {
            (row["metric"].get("k8s_cluster_name"), row["metric"].get("team")): float(row["value"][1]) for row in rows
        }


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """A fleet that is gone afterwards."""
    with ExitStack() as held:
        yield Fleet(held, tmp_path)


def write_log(folder: Path, number: int, *, team: str, error: str | None) -> None:
    """The finished log of an application that every cluster has."""
    identity = {"App Name": "nightly", "App ID": f"{folder.parent.name}-{number}"}
    lines = [
        log.environment({"spark.kubernetes.driver.label.team": team}),
        log.started() | identity,
        log.executor(),
        log.job(1, [1]),
        log.job_ended(1, error=error),
        log.ended(),
    ]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    partial = folder / f".{number}"
    partial.write_text(text, encoding="utf-8")
    partial.rename(folder / f"app-{number}")


def test_each_team_gets_the_alerts_about_its_applications_on_its_cluster(fleet: Fleet) -> None:
    """Applications of one name in two clusters do not mix: neither their alerts, nor their metrics, nor their spans."""
    clusters = ((each, f"k8s.cluster.name={each}") for each in ("east", "west"))
    with fleet.bridge(*next(clusters)) as (east, first), fleet.bridge(*next(clusters)) as (west, second):
        write_log(east, 1, team="web", error="it failed")
        write_log(west, 1, team="data", error=None)
        fleet.hooks.wait(("web", "SparkApplicationFailed", "firing", "web", "east"))
        write_log(west, 2, team="data", error="it failed, too")
        fleet.hooks.wait(("data", "SparkApplicationFailed", "firing", "data", "west"))
        failed = {("east", "web"): 1, ("west", "data"): 1}
        poll_until(
            lambda: fleet.values("spark_jobs_failed_total") == failed, lambda: fleet.values("spark_jobs_failed_total")
        )
        fleet.hooks.wait(
            ("web", "SparkApplicationFailed", "resolved", "web", "east"),
            ("data", "SparkApplicationFailed", "resolved", "data", "west"),
        )
        assert first.ends() == second.ends() == 0
    owners = {(each["service.name"], each.get("k8s.cluster.name"), each.get("team")) for each in fleet.traces.resources}
    assert owners == {("nightly", "east", "web"), ("nightly", "west", "data")}
    assert len(fleet.traces.spans) == len({span.span_id for span in fleet.traces.spans})
    assert {(to, team) for to, name, _, team, _ in fleet.hooks.alerts if name == "SparkApplicationFailed"} == {
        ("web", "web"),
        ("data", "data"),
    }


def test_counts_of_two_bridges_add_up_where_nothing_tells_their_applications_apart(fleet: Fleet) -> None:
    """Each sends totals of its own: they would replace each other in one series."""
    most = "max_over_time(sum by (spark_app_name) (spark_jobs_failed_total)[5m:1s])"
    with fleet.bridge("one") as (one, first), fleet.bridge("two") as (two, second):
        for number in range(3):
            write_log(one, number, team="", error="it failed")
        write_log(two, 1, team="", error="it failed, too")
        poll_until(lambda: fleet.values(most) == {(None, None): 4}, lambda: fleet.values(most))
        assert first.ends() == second.ends() == 0


def test_each_team_gets_the_alerts_about_its_pipelines(fleet: Fleet) -> None:
    """A failing run and a late one, until a run of the same team succeeds."""
    fleet.run("web", "fails", every=3600)
    fleet.run("data", "succeeds", every=1)
    fleet.hooks.wait(
        ("web", "PipelineRunFailing", "firing", "web", None), ("data", "PipelineRunLate", "firing", "data", None)
    )
    fleet.run("web", "succeeds", every=3600)
    fleet.hooks.wait(("web", "PipelineRunFailing", "resolved", "web", None))
    fleet.run("data", "succeeds-again", every=3600)
    fleet.hooks.wait(("data", "PipelineRunLate", "resolved", "data", None))
    assert {to for to, _, _, team, _ in fleet.hooks.alerts if team == "web"} == {"web"}
    assert {to for to, _, _, team, _ in fleet.hooks.alerts if team == "data"} == {"data"}
