"""Executors and hosts that Spark excluded are known, from which tasks, and until when."""

import pytest

from spark_app.eventlog.model.exclusions import MAX_EXCLUSIONS, Exclusion
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line

WHERE = {"stageId": 3, "stageAttemptId": 1}


def exclusions(*lines: Line) -> list[Exclusion]:
    """What some lines say of exclusions."""
    return log.application([log.started(), *lines]).exclusions


def test_each_kind_of_event_is_read() -> None:
    """Of an executor and of a host, from a stage attempt and from all."""
    assert exclusions(
        log.exclusion("ExecutorExcludedForStage", executorId="1", taskFailures=2, **WHERE),
        log.exclusion("NodeExcludedForStage", hostId="h", executorFailures=3, **WHERE),
        log.exclusion("ExecutorExcluded", executorId="1", taskFailures=4),
        log.exclusion("NodeExcluded", hostId="h", executorFailures=5),
        log.exclusion("ExecutorUnexcluded", executorId="1", time=3000),
        log.exclusion("NodeUnexcluded", hostId="h", time=3001),
    ) == [
        Exclusion("1", None, (3, 1), 2, 2500),
        Exclusion(None, "h", (3, 1), 3, 2500),
        Exclusion("1", None, None, 4, 2500, 3000),
        Exclusion(None, "h", None, 5, 2500, 3001),
    ]


@pytest.mark.parametrize("word", ["Excluded", "Blacklisted"])
def test_each_exclusion_is_there_once(word: str) -> None:
    """Spark logs it by its old name as well; before 3.1 by that name alone."""
    names = {"Excluded", word}
    begun = [log.exclusion(f"Executor{name}", executorId="1", taskFailures=2) for name in sorted(names)]
    ended = [log.exclusion(f"ExecutorUn{name.lower()}", executorId="1", time=3000) for name in sorted(names)]
    again = log.exclusion(f"Executor{word}", executorId="1", taskFailures=1, time=4000)
    assert exclusions(*begun, *ended, again) == [
        Exclusion("1", None, None, 2, 2500, 3000),
        Exclusion("1", None, None, 1, 4000),
    ]


def test_an_exclusion_that_ends_before_it_begins_took_no_time() -> None:
    """As where a clock is set back."""
    back = log.exclusion("NodeUnexcluded", hostId="h", time=2000)
    assert [each.ended for each in exclusions(log.exclusion("NodeExcluded", hostId="h"), back)] == [2500]


def test_exclusions_are_bounded() -> None:
    """An application may run for months."""
    lines = [log.exclusion("ExecutorExcluded", executorId=str(number)) for number in range(MAX_EXCLUSIONS + 5)]
    assert len(exclusions(*lines)) == MAX_EXCLUSIONS
