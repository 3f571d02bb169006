import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from app.commands import cells

UTC_NOON = datetime.datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=datetime.UTC)


def test_instants_are_utc_whatever_zone_they_come_in() -> None:
    """An instant is shown in UTC, with the Z that says so; one without a zone gets none."""
    berlin = UTC_NOON.astimezone(datetime.timezone(datetime.timedelta(hours=1)))
    assert cells.value(berlin) == "2024-01-01T12:00:00.123456Z"
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
