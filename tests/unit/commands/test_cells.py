import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from app.commands import cells

UTC_NOON = datetime.datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=datetime.UTC)


def test_what_is_not_known_is_a_dash() -> None:
    """A figure that nobody knows is never shown as 0."""
    assert [cells.count(None), cells.size(None), cells.duration(None), cells.moment(None)] == ["-"] * 4
    assert [cells.count(0), cells.size(0), cells.duration(0)] == ["0", "0 B", "0.0 s"]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (3_210_000_000_000_000, "3210.0 TB"),
    ],
)
def test_a_size_is_in_the_largest_unit_that_leaves_one(number: int, text: str) -> None:
    """Rounding never gives 1000 of a unit that has a larger one."""
    assert cells.size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.94, "59.9 s"), (59.95, "1 min 00 s"), (3599.6, "1 h 00 min"), (125, "2 min 05 s")],
)
def test_a_duration_is_in_units_a_person_reads(seconds: float, text: str) -> None:
    """Rounding never gives 60 seconds or 60 minutes."""
    assert cells.duration(seconds) == text


def test_instants_are_utc_whatever_zone_they_come_in() -> None:
    """An instant is shown in UTC, with the Z that says so; one without a zone gets none."""
    berlin = UTC_NOON.astimezone(datetime.timezone(datetime.timedelta(hours=1)))
    assert cells.value(berlin) == "2024-01-01T12:00:00.123456Z"
    assert cells.moment(berlin) == "2024-01-01 12:00:00Z"
    assert cells.value(UTC_NOON.replace(tzinfo=None)) == "2024-01-01T12:00:00.123456"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "null"),
        (Decimal("0E-8"), "0.00000000"),
        (Decimal("12345678901234567890.10"), "12345678901234567890.10"),
        (True, "true"),
        (b"\x00\xff", "00ff"),
        (datetime.date(2024, 1, 1), "2024-01-01"),
        (["a", None, {"k": Decimal("1.20")}], "[a, null, {k: 1.20}]"),
        (1.5, "1.5"),
    ],
)
def test_a_cell_has_all_digits_and_no_surprise(content: object, text: str) -> None:
    """Decimals keep their digits and are never written with an exponent; structures are shown flat."""
    assert cells.value(content) == text


@pytest.mark.parametrize("hostile", ["\x1b[31m", "a\nb", "\r", "\u202e", "\x9b31m", "\u2028", "\x00", "\u200b"])
def test_text_that_a_terminal_would_act_on_is_escaped(hostile: str) -> None:
    """Control, invisible and direction characters are shown as escapes, on one line."""
    assert cells.value(hostile).isprintable()
    assert cells.value(hostile).startswith(("\\", "a\\n"))


def test_text_that_is_harmless_stays() -> None:
    """Letters of any script and markup are left as they are."""
    assert cells.value("[red]Grüße 東京[/red]") == "[red]Grüße 東京[/red]"


def test_a_path_is_given_as_it_is_typed_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path below the working folder is relative; any other, and a URI, stays whole."""
    monkeypatch.chdir(tmp_path)
    assert cells.place(tmp_path / "runs" / "x") == "runs/x"
    assert cells.place("/elsewhere/x") == "/elsewhere/x"
    assert cells.place("s3a://bucket/x") == "s3a://bucket/x"
