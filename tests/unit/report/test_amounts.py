import pytest

from app.report import amounts


@pytest.mark.parametrize(
    "shown", [amounts.count, amounts.size, amounts.duration, amounts.share, amounts.times, amounts.moment]
)
def test_what_is_unknown_is_said(shown: object) -> None:
    """None is never shown as a number."""
    assert callable(shown)
    assert shown(None) == "not known"


def test_a_number_of_a_finding_is_shown_in_the_unit_of_its_name() -> None:
    """`_ms`, `_bytes` and `_ratio` say what it is."""
    told = {"longest_task_ms": 1500.0, "longest_task_bytes": 2048.0, "gc_ratio": 0.12, "tasks": 3.0}
    shown = {amounts.words(name): amounts.amount(name, number) for name, number in told.items()}
    assert shown == {"longest task time": "1.5 s", "longest task": "2.0 KiB", "gc": "12 %", "tasks": "3"}


@pytest.mark.parametrize(("number", "told"), [(0, "0 jobs"), (1, "1 job"), (1200, "1,200 jobs")])
def test_one_is_no_plural(number: int, told: str) -> None:
    """As a person would write it."""
    assert amounts.things(number, "job") == told


def test_a_secret_in_a_text_is_masked() -> None:
    """Whatever strangers have put into a name, a plan or an error."""
    assert amounts.text("jdbc:db://h?password=hunter2&ssl=true") == "jdbc:db://h?password=(redacted)&ssl=true"
    assert amounts.line("job.py --token hunter2") == "job.py --token (redacted)"


def test_a_long_text_is_cut_and_says_so() -> None:
    """The reader knows how much there was."""
    assert amounts.text("q" * 10_000, 5) == "qqqqq… (cut: 10,000 characters)"


def test_what_a_terminal_or_a_browser_would_act_on_is_replaced() -> None:
    """Control characters and half a character (which no file can hold) are shown as what cannot be shown."""
    assert amounts.text("a\x07\ud800b") == "a��b"
