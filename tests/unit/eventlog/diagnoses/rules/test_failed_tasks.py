from typing import Any

import pytest

from spark_app.eventlog.findings import Severity
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import found, stage, task


@pytest.mark.parametrize(
    ("seconds", "count", "failure", "severity"),
    [
        (0.1, 1, None, "info"),
        (30, 1, None, "warning"),
        (4, 21, None, "info"),
        (0.1, 1, "Job aborted due to stage failure", "warning"),
    ],
    ids=["quick", "long", "few of many", "given up"],
)
def test_failed_tasks_are_a_warning_where_they_cost_something(
    seconds: float, count: int, failure: str | None, severity: Severity
) -> None:
    """Or where the stage gave up; else they are an info."""
    tasks = [task(0, seconds, error="broken row"), *(task(number, 1) for number in range(1, count))]
    info: dict[str, Any] = {} if failure is None else {"Failure Reason": failure}
    finding = found(stage(tasks, seconds=40, **info))["failed_tasks"]
    assert finding.severity == severity
    assert f"1 of {count} task attempts failed" in finding.text
    assert "java.lang.Exception: broken row" in finding.text


def test_the_most_frequent_failure_is_told() -> None:
    """On one line, however it was written."""
    errors = ["a", "b\nat line 2", "b\nat line 2"]
    finding = found(stage([task(number, 1, error=error) for number, error in enumerate(errors)], seconds=3))
    assert finding["failed_tasks"].text.endswith("most frequent error: java.lang.Exception: b at line 2")


def test_failures_on_one_of_several_hosts_are_told() -> None:
    """A bad host is distinguished from bad data."""
    tasks = [task(number, 1, error="x", host="worker-9") for number in range(2)]
    lines = stage(tasks, seconds=3)
    assert "all on worker-9" not in found(lines)["failed_tasks"].text
    assert "all on worker-9" in found([*lines[:2], log.executor("9", host="worker-9"), *lines[2:]])["failed_tasks"].text


def test_more_failures_than_are_kept_are_counted() -> None:
    """The text has the number of all of them."""
    tasks = [task(number, 0.1, error="x") for number in range(80)]
    assert "80 of 80 task attempts failed" in found(stage(tasks, seconds=9))["failed_tasks"].text


def test_a_host_with_an_endless_name_is_cut() -> None:
    """What else is said stays readable."""
    tasks = [task(number, 1, error="x", host="h" * 9999) for number in range(2)]
    lines = stage(tasks, seconds=3)
    text = found([*lines[:2], log.executor("9", host="other"), *lines[2:]])["failed_tasks"].text
    assert len(text) < 300
