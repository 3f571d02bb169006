"""A call site leads to a line of the program, or into Spark; other texts are none."""

import pytest

from spark_app.eventlog.model.call_sites import CallSite, called, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("save at job.py:7", CallSite("save", "job.py", "7")),
        ("collect at /scratch/dir 7/job.py:11", CallSite("collect", "/scratch/dir 7/job.py", "11")),
        ("what costs more than $ 5 at the shop", None),
        ("late orders at job.py:7", None),
        ("$" * 100_000, None),
        ("", None),
        (None, None),
    ],
)
def test_a_call_and_its_line_are_a_call_site(text: str | None, expected: CallSite | None) -> None:
    """What a program says in words is none; however long it is."""
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "is_internal", "is_of_program"),
    [
        ("save at job.py:7", False, True),
        ("save at /a/$b/job.py:7", False, True),
        ("run at /jobs/threading.py:9", False, True),
        ("parquet at NativeMethodAccessorImpl.java:0", False, False),
        ("parquet at DirectMethodHandleAccessor.java:103", False, False),
        ("run at <unknown>:0", False, False),
        ("$anonfun$withThreadLocalCaptured$1 at CompletableFuture.java:1768", True, False),
        ("call at /lib/py4j/clientserver.py:642", True, False),
        ("run at /usr/lib/python3.11/threading.py:982", True, False),
    ],
)
def test_a_call_leads_to_the_program_or_into_spark(text: str, *, is_internal: bool, is_of_program: bool) -> None:
    """Of a call from Python nobody knows the line; it is no call from inside Spark, though."""
    site = parse(text)
    assert site is not None
    assert (site.is_internal, site.is_of_program) == (is_internal, is_of_program)


def test_an_action_has_the_name_that_the_program_calls_it_by() -> None:
    """The methods of the JVM behind some have other names."""
    sites = map(parse, ("collectToPython at job.py:7", "count at job.py:8"))
    assert [site.action for site in sites if site] == ["collect", "count"]


def test_a_stage_is_called_by_the_method_around_its_anonymous_functions() -> None:
    """Spark numbers these."""
    assert called("$anonfun$run$1 at Thread.java:7") == "run"
    assert called("save") == "save"
