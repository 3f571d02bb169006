"""Recorded logs are damaged for a minute, in every way, and read."""

import time
from pathlib import Path
from typing import Final

from tests.eventlogs import damage

SECONDS: Final = 60


def test_damaged_logs_are_read(tmp_path: Path) -> None:
    """The seed is that of the day; a rule that does not hold is printed with what repeats it."""
    tried, broken = damage.broken_in(damage.endless(int(time.time() // 86_400)), tmp_path, SECONDS)
    assert tried
    assert broken == []
