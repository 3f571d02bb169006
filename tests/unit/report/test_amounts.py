import pytest

from app.report import amounts


@pytest.mark.parametrize(
    "shown", [amounts.count, amounts.size, amounts.span, amounts.share, amounts.times, amounts.moment]
)
def test_what_is_unknown_is_said(shown: object) -> None:
    """None is never shown as a number."""
    assert callable(shown)
    assert shown(None) == "not known"


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "0 ms"),
        (99, "99 ms"),
        (420, "0.42 s"),
        (12_340, "12.3 s"),
        (125_000, "2 min 05 s"),
        (3_720_000, "1 h 02 min"),
    ],
)
def test_a_time_has_the_unit_that_it_is_read_in(milliseconds: int, shown: str) -> None:
    """From milliseconds to hours."""
    assert amounts.span(milliseconds) == shown


def test_a_small_share_is_not_shown_as_none() -> None:
    """One broken row of a million is more than 0 %."""
    assert [amounts.share(0), amounts.share(1e-6), amounts.share(0.02)] == ["0 %", "< 0.1 %", "2 %"]


def test_a_number_of_a_finding_is_shown_in_the_unit_of_its_name() -> None:
    """`_ms`, `_bytes` and `_ratio` say what it is."""
    told = {"longest_ms": 1500.0, "spilled_bytes": 2000.0, "gc_ratio": 0.12, "tasks": 3.0}
    shown = {amounts.words(name): amounts.amount(name, number) for name, number in told.items()}
    assert shown == {"longest": "1.50 s", "spilled": "2.0 kB", "gc": "12 %", "tasks": "3"}


def test_a_secret_in_a_text_is_masked() -> None:
    """A password in an address or an option is not shown, what is around it is."""
    shown = amounts.text("jdbc:db://h?user=me&password=hunter2&ssl=true, fs.s3a.access.key: AKIA")
    assert shown == "jdbc:db://h?user=me&password=(redacted)&ssl=true, fs.s3a.access.key: (redacted)"


def test_a_long_text_is_cut_and_says_so() -> None:
    """The reader knows how much there was."""
    assert amounts.text("q" * 10_000, 5) == "qqqqq… (cut: 10,000 characters)"


def test_what_a_terminal_or_a_browser_would_act_on_is_replaced() -> None:
    """Control characters and half a character (which no file can hold) are shown as what cannot be shown."""
    assert amounts.text("a\x07\ud800b") == "a��b"
