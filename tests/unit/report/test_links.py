from pathlib import Path
from urllib.parse import quote

from spark_app.eventlog import span_ids
from spark_app.report import run_info
from spark_app.report.links import links
from spark_app.report.scope import scope
from spark_app.settings import Backends
from tests.eventlogs import record_connect, walking
from tests.unit.eventlog import log
from tests.unit.report.conftest import TRACE, Read, record_of

JAEGER, GRAFANA = "http://jaeger:16686", "http://grafana:3000"


def backends(**urls: str) -> Backends:
    """Some programs of the stack; all others are not configured."""
    return Backends.model_validate(dict.fromkeys(Backends.model_fields) | urls)


def test_a_run_links_to_its_trace_and_to_its_time_on_a_dashboard(reading: Read, run_folder: Path) -> None:
    """From a minute before it to a minute after it; a trailing slash in the configured URL does no harm."""
    record_of(run_folder)
    about = scope(reading([log.started(), log.ended()]).app, run_info.read(run_folder))
    start, end = int(about.period.start) - 60_000, int(about.period.end) + 60_000
    assert [link.url for link in links(about, backends(jaeger=f"{JAEGER}/", grafana=GRAFANA))] == [
        f"{JAEGER}/trace/{TRACE}",
        f"{GRAFANA}/d/pipeline-runs?from={start}&to={end}",
    ]


def test_an_application_links_to_the_trace_that_the_bridge_exports(reading: Read) -> None:
    """By the derived trace id."""
    app = reading([log.started(), log.ended()]).app
    (link,) = links(scope(app, None), backends(jaeger=JAEGER))
    assert link.url == f"{JAEGER}/trace/{span_ids.of_application(app).trace_id:032x}"


def test_micro_batches_are_found_by_their_query(reading: Read) -> None:
    """Each has a trace of its own, so that a search leads to them."""
    event = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent"
    begun = {"Event": event, "id": "q", "runId": "r", "name": "copied"}
    of_batch = {"sql.streaming.queryId": "q", "streaming.sql.batchId": "7", "spark.jobGroup.id": "r"}
    app = reading([log.started(), begun, log.job(0, [], **of_batch), log.job_ended(0), log.ended()]).app
    found = links(scope(app, None), backends(jaeger=JAEGER))
    assert found[1].url.startswith(f"{JAEGER}/search?service={quote(app.name or '')}&operation=batch%20copied&start=")


def test_sessions_of_a_server_are_found_by_its_name() -> None:
    """Each has a trace of its own; that of a program with a server for itself is in the trace of the application."""
    server, local = (scope(walking.read(record_connect.recorded(name))[0], None) for name in ("server", "local"))
    found = {link.name: link.url for link in links(server, backends(jaeger=JAEGER))}
    assert found["Sessions in Jaeger"].startswith(f"{JAEGER}/search?service=Spark%20Connect%20server&start=")
    assert [link.name for link in links(local, backends(jaeger=JAEGER))] == ["Trace in Jaeger"]


def test_only_configured_backends_are_linked(reading: Read) -> None:
    """None, or some of them."""
    about = scope(reading([log.started(), log.ended()]).app, None)
    assert links(about, None) == []
    assert [link.name for link in links(about, backends(grafana=GRAFANA))] == ["Dashboard in Grafana"]
