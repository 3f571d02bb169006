"""Whatever is wrong with a log: nothing raises or hangs, no number is negative, and spans are within their parents."""

from pathlib import Path
from typing import Final

import pytest

from tests.eventlogs import damage
from tests.eventlogs.damage import Case

SEED: Final = 12


@pytest.mark.parametrize("case", list(damage.each_once(SEED)), ids=lambda case: case.damage)
def test_a_damaged_log_is_read(case: Case, tmp_path: Path) -> None:
    """Each kind of damage once; `make chaos` tries them for a minute."""
    assert case.broken(tmp_path) == []
