import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from spark_app.commands import cells

UTC_NOON = datetime.datetime(2024, 1, 1, 12, 0, 0, 123456, tzinfo=datetime.UTC)


def test_instants_are_shown_in_utc() -> None:
    """With a `Z`; one without a zone has none."""
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
def test_a_cell_has_all_digits(content: object, text: str) -> None:
    """Decimals have no exponent; structures are flat."""
    assert cells.value(content) == text


@pytest.mark.parametrize("hostile", ["\x1b[31m", "a\nb", "\r", "\u202e", "\x9b31m", "\u2028", "\x00", "\u200b"])
def test_control_characters_are_escaped(hostile: str) -> None:
    """Invisible and direction characters too, on one line."""
    assert cells.value(hostile).isprintable()
    assert cells.value(hostile).startswith(("\\", "a\\n"))


def test_other_text_is_unchanged() -> None:
    """Letters of any script, and markup."""
    assert cells.value("[red]Grüße 東京[/red]") == "[red]Grüße 東京[/red]"


def test_a_path_below_the_working_folder_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other path, and a URI, stays whole."""
    monkeypatch.chdir(tmp_path)
    assert cells.shown_path(tmp_path / "runs" / "x") == "runs/x"
    assert cells.shown_path("/elsewhere/x") == "/elsewhere/x"
    assert cells.shown_path("s3a://bucket/x") == "s3a://bucket/x"


def test_a_file_has_an_address_for_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Escaped, so that neither white space nor control characters end it; a URL stays."""
    monkeypatch.chdir(tmp_path)
    assert cells.uri("a b\x1b.html") == f"{tmp_path.as_uri()}/a%20b%1B.html"
    assert cells.uri("http://localhost:8088/r.html") == "http://localhost:8088/r.html"
