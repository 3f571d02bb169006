"""A report covers a run, and the findings about it."""

import datetime

from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Place
from spark_app.report.run_info import RunInfo
from spark_app.report.scope import Scope, scope
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.plans import application, node, ran
from tests.unit.eventlog.model.test_streams import DONE, progress
from tests.unit.run_records import example_record


def test_a_place_of_another_streaming_query_is_not_in_a_run() -> None:
    """Several queries share an application, and each has a run of its own."""
    app = log.application([*DONE, progress(0), log.ended()])
    covers = scope(app, None).covers()
    assert [covers(Place(None, None, name, None)) for name in ("copied", "query-1", "another")] == [True, True, False]


def test_the_findings_of_a_run_have_nothing_of_another() -> None:
    """Two queries write small files: text, numbers and places are those of the query that the run has."""
    app = application(*(ran(number, node("Exchange"), tasks=100 * number) for number in (2, 4)))
    started = datetime.datetime.fromtimestamp(app.queries[2].started / 1000, datetime.UTC)
    record = example_record(trace_id=None, started_at=started, seconds=60)
    assert _written(scope(app, None)) == (
        "Query 2 (Query 2): writes at least 200 files of at most 1.0 MiB on average; with 1 more place (query 4)",
        600,
    )
    assert _written(scope(app, RunInfo(record.folder, record))) == (
        "Query 2 (Query 2): writes at least 200 files of at most 1.0 MiB on average",
        200,
    )


def _written(about: Scope) -> tuple[str, float]:
    (finding,) = diagnose(about.app, Thresholds(), about.covers())
    return finding.text, finding.numbers["files"]
