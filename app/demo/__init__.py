"""Generated data of an online shop, with planted faults."""

from typing import Final

DEMO_ROWS: Final = 10_000
"""Transactions per day by default."""
DEMO_SEED: Final = 7
"""Determines the rows; days of the same seed and number of rows share their customers."""
