"""Made data of an online shop, faults included."""

from typing import Final

DEMO_ROWS: Final = 10_000
"""Transactions of a day that nobody has asked for more or fewer of."""
DEMO_SEED: Final = 7
"""What their rows are drawn from; days of one seed and of as many rows fit together."""
