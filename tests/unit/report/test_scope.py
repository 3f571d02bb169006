"""A report covers a run, and the findings about it."""

from dataclasses import replace

from app.eventlog.findings import Finding
from app.report.scope import scope
from tests.unit.eventlog import log
from tests.unit.eventlog.model.test_streams import DONE, progress


def test_a_finding_about_another_streaming_query_is_not_about_a_run() -> None:
    """Several queries share an application, and each has a run of its own."""
    app = log.application([*DONE, progress(0), log.ended()])
    own, another = [Finding("tiny_batches", "info", "", "", stream=name) for name in ("copied", "another")]
    of_run = scope(app, None)
    assert of_run.has(own)
    assert not of_run.has(another)
    assert of_run.has(replace(another, stream="query-1"))
