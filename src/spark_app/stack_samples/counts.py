"""How many samples there are of something, and how exact such a number is."""

import math
from typing import Final, NamedTuple

MIN_FUNCTION_SAMPLES: Final = 5
"""Fewer samples of a function are not shown: the interval of so many is already 1.6 to 11.7."""
MIN_STAGE_SAMPLES: Final = 20
"""Fewer samples of a stage get no picture. Project: the share of a half of them is known to a quarter."""
_NORMAL: Final = 1.959964
"""Of 95 %."""


class Tally(NamedTuple):
    """Samples, and the time that they stand for: their weights by the interval of their process.

    One that stands for many, as of a thread that waits, counts as so many.
    """

    samples: int = 0
    ms: float = 0.0

    def __add__(self, other: "Tally") -> "Tally":  # type: ignore[override]
        """Both together."""
        return Tally(self.samples + other.samples, self.ms + other.ms)

    def interval_ms(self) -> tuple[float, float]:
        """The time between whose ends it is in 19 of 20 cases."""
        each = self.ms / self.samples if self.samples else 0.0
        low, high = interval(self.samples)
        return low * each, high * each


NO_SAMPLES: Final = Tally()


def interval(count: int) -> tuple[float, float]:
    """The numbers between which the mean is, in 19 of 20 cases, where so many were counted.

    Source: the approximation of Byar to the exact interval of Poisson (Breslow and Day 1987, volume II, page 69).
    """
    if count == 0:
        return 0.0, -math.log(0.025)
    low = count * (1 - 1 / (9 * count) - _NORMAL / (3 * math.sqrt(count))) ** 3
    above = count + 1
    return max(0.0, low), above * (1 - 1 / (9 * above) + _NORMAL / (3 * math.sqrt(above))) ** 3
