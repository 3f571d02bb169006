"""Each series begins with 0, once."""

from app.eventlog.bridge.beginnings import Beginnings
from app.eventlog.bridge.metrics import Aggregate, merged
from tests.unit.eventlog.bridge.test_metrics import meter, metered
from tests.unit.eventlog.logs import program


def counts(numbers: Aggregate) -> dict[tuple[str, ...], int]:
    """What each series counts."""
    found: dict[tuple[str, ...], int] = {}
    for application, each in numbers.applications.items():
        found |= {(application, *key): count for key, count in each.counts.items()}
        for name, group in each.groups.items():
            found |= {(application, name, metric): count for metric, count in group.counts.items()}
            found |= {(application, name, metric): sum(told.counts) for metric, told in group.histograms.items()}
    return found


def test_what_was_never_told_begins_with_nothing() -> None:
    """Every series, with all its buckets; nothing that has no end to count to."""
    numbers = meter(program(3)).aggregate()
    zeros = Beginnings().of(numbers)
    assert counts(zeros) == dict.fromkeys(counts(numbers), 0)
    assert counts(merged([zeros, numbers])) == counts(numbers)
    assert [each.levels for each in zeros.applications.values()] == [{}]


def test_what_was_told_does_not_begin_again() -> None:
    """Only what is new does."""
    beginnings, before = Beginnings(), meter(program(3)).aggregate()
    beginnings.sent(before)
    assert counts(beginnings.of(before)) == {}
    begin, *rest = program()
    after = meter([begin, *rest[:2], metered(0), *rest[3:]]).aggregate()
    new = counts(beginnings.of(after))
    assert new == dict.fromkeys(counts(after).keys() - counts(before).keys(), 0)
    assert new
