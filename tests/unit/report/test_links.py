from pathlib import Path

from app.eventlog import identity
from app.report import runs
from app.report.links import links
from app.report.scope import scope
from app.settings import Backends
from tests.unit.eventlog import log
from tests.unit.report.conftest import TRACE, Read, record_of

JAEGER, GRAFANA = "http://jaeger:16686", "http://grafana:3000"


def backends(**told: str) -> Backends:
    """Some programs of the stack; all others are not configured."""
    return Backends.model_validate(dict.fromkeys(Backends.model_fields) | told)


def test_a_run_leads_to_its_trace_and_to_its_time_on_a_dashboard(reading: Read, run_folder: Path) -> None:
    """From a minute before it to a minute after it; a slash at the end of an address does no harm."""
    record_of(run_folder)
    about = scope(reading([log.started(), log.ended()]).app, runs.of(run_folder))
    start, end = int(about.period.start) - 60_000, int(about.period.end) + 60_000
    assert [link.url for link in links(about, backends(jaeger=f"{JAEGER}/", grafana=GRAFANA))] == [
        f"{JAEGER}/trace/{TRACE}",
        f"{GRAFANA}/d/pipeline-runs?from={start}&to={end}",
    ]


def test_an_application_leads_to_the_trace_that_a_bridge_makes_of_it(reading: Read) -> None:
    """By the id that is derived of it."""
    app = reading([log.started(), log.ended()]).app
    (link,) = links(scope(app, None), backends(jaeger=JAEGER))
    assert link.url == f"{JAEGER}/trace/{identity.of_application(app).trace_id:032x}"


def test_what_is_not_configured_is_no_link(reading: Read) -> None:
    """Nothing, or a part of it."""
    about = scope(reading([log.started(), log.ended()]).app, None)
    assert links(about, None) == []
    assert [link.name for link in links(about, backends(grafana=GRAFANA))] == ["Dashboard in Grafana"]
