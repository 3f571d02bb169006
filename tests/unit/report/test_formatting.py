import pytest

from spark_app.report import formatting


@pytest.mark.parametrize(
    "shown",
    [formatting.count, formatting.size, formatting.duration, formatting.share, formatting.times, formatting.timestamp],
)
def test_unknown_values_are_not_known(shown: object) -> None:
    """None is never shown as a number."""
    assert callable(shown)
    assert shown(None) == "not known"


def test_a_number_of_a_finding_has_the_unit_of_its_name() -> None:
    """`_ms`, `_bytes` and `_ratio`."""
    numbers = {"longest_task_ms": 1500.0, "longest_task_bytes": 2048.0, "gc_ratio": 0.12, "tasks": 3.0}
    shown = {formatting.words(name): formatting.amount(name, number) for name, number in numbers.items()}
    assert shown == {"longest task time": "1.5 s", "longest task": "2.0 KiB", "gc": "12 %", "tasks": "3"}


def test_a_limit_has_the_unit_of_its_name() -> None:
    """A ratio above 1 is no percentage."""
    limits = {"skew_ratio": 3.16, "gc_ratio": 0.1, "disk_bytes_per_second": 125.0 * 1024**2, "tiny_tasks": 100.0}
    shown = {name: formatting.limit(name, value) for name, value in limits.items()}
    assert shown == {
        "skew_ratio": "3.16 x",
        "gc_ratio": "10 %",
        "disk_bytes_per_second": "125.0 MiB/s",
        "tiny_tasks": "100",
    }


def test_secrets_in_text_are_masked() -> None:
    """In names, plans and errors of any program."""
    assert formatting.text("jdbc:db://h?password=hunter2&ssl=true") == "jdbc:db://h?password=(redacted)&ssl=true"
    assert formatting.line("job.py --token hunter2") == "job.py --token (redacted)"


def test_long_text_is_truncated_with_its_length() -> None:
    """So the reader knows how much is missing."""
    assert formatting.text("q" * 10_000, 5) == "qqqqq… (truncated, 10,000 characters)"


def test_control_characters_are_replaced() -> None:
    """And lone surrogates, which no file can hold."""
    assert formatting.text("a\x07\ud800b") == "a��b"
    assert formatting.line("a\x07\n b") == "a� b"


@pytest.mark.parametrize(
    ("ms", "label"), [(0, "0"), (500, "500 ms"), (90_000, "1 min 30 s"), (36e5, "1 h"), (172.8e6, "2 d")]
)
def test_a_time_of_an_axis_is_in_its_largest_unit(ms: float, label: str) -> None:
    """Streams run for months."""
    assert formatting.tick(ms) == label


def test_a_change_of_a_duration_is_said_in_words() -> None:
    """A negative percentage would be read as a wrong one."""
    assert [formatting.change_of_time(share) for share in (-0.27, 0.48, 0.001)] == [
        "27 % shorter",
        "48 % longer",
        "the same",
    ]
    assert [formatting.apart(share) for share in (-0.03, 0.6, 0.001)] == [
        "3 % too short",
        "60 % too long",
        "exact to 1 %",
    ]


@pytest.mark.parametrize("milliseconds", [1e20, -1e20, float("nan")])
def test_a_time_that_no_calendar_has_is_null(milliseconds: float) -> None:
    """A broken log ends no command."""
    assert formatting.instant(milliseconds) is None
    assert formatting.timestamp(milliseconds) == formatting.UNKNOWN
