import json

from spark_app.annexes.lineage.datasets import Dataset, Field
from spark_app.annexes.lineage.openlineage import encoded, events
from spark_app.annexes.lineage.runs import JobRun, LineageRun

RUN = "11111111-2222-4333-8444-555555555555"


def test_the_application_starts_first_and_ends_last_also_in_the_same_millisecond() -> None:
    """A server takes the events in this order."""
    whole, query = JobRun("prod", "shop", RUN), JobRun("prod", "shop.copy", RUN)
    runs = [
        LineageRun(whole, "APPLICATION", None, 1000, 9000, "COMPLETE"),
        LineageRun(query, "QUERY", whole, 1000, 9000, "FAIL", error="no space"),
    ]
    for each in (runs, runs[::-1]):
        found = [(event.job.name, event.eventType and event.eventType.value) for event in events(each)]
        assert found == [("shop", "START"), ("shop.copy", "START"), ("shop.copy", "FAIL"), ("shop", "COMPLETE")]


def test_only_the_end_of_a_run_has_its_error() -> None:
    """When it started, nobody knew."""
    run = LineageRun(JobRun("prod", "shop", RUN), "APPLICATION", None, 1000, 9000, "FAIL", error="no space")
    start, end = events([run])
    assert "errorMessage" not in (start.run.facets or {})
    assert (end.run.facets or {})["errorMessage"].message == "no space"  # type: ignore[attr-defined]


def test_an_output_says_what_its_columns_are_made_of() -> None:
    """In the facet `columnLineage`; one of which that is not known has no such facet."""
    origins = (("total", (Field("file", "/in", "amount"), Field("file", "/in", "tax"))),)
    outputs = (Dataset("file", "/out", origins=origins), Dataset("file", "/other"))
    run = LineageRun(JobRun("prod", "shop", RUN), "QUERY", None, 1000, 9000, "COMPLETE", outputs=outputs)
    known, other = json.loads(encoded(events([run])[1]))["outputs"]
    fields = [{"namespace": "file", "name": "/in", "field": name} for name in ("amount", "tax")]
    assert known["facets"]["columnLineage"]["fields"] == {"total": {"inputFields": fields}}
    assert "columnLineage" not in other["facets"]
