"""Whether a setting helps beyond the noise: paired runs, one with it and one without, next to each other.

Of each pair the logarithm of the ratio is taken, and of these the mean with Student's t interval. Source: R. Jain, The
Art of Computer Systems Performance Analysis, 13.4.1 "Paired Observations". Runs of a pair share the state of the
machine, so that its slow changes cancel out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final

MIN_PAIRS: Final = 3
"""Fewer pairs prove nothing. Project."""
MIN_SAVING: Final = 0.02
"""A smaller mean saving is not worth a setting. Project."""
NO_SLOWER: Final = 0.05
"""What saves cost may take at most this much longer, with certainty. Project."""
T_95: Final = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753)
"""The 95 % quantiles of Student's t for 1, 2, … degrees of freedom; the last one is used for more, which is careful."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The change of a figure by a setting, as a share: -0.2 is a fifth less.

    Attributes:
        mean: The geometric mean over the pairs.
        low, high: The bounds of its interval: the truth is below `high` with 95 % confidence, and above `low` likewise.
        pairs: How many pairs of runs.
    """

    mean: float
    low: float
    high: float
    pairs: int

    @property
    def helps(self) -> bool:
        """Whether it is less with certainty, and by enough to matter."""
        return self.pairs >= MIN_PAIRS and self.high < 0 and self.mean <= -MIN_SAVING

    @property
    def is_no_slower(self) -> bool:
        """Whether it is not much more with certainty."""
        return self.pairs >= MIN_PAIRS and self.high <= NO_SLOWER


def change(pairs: Sequence[tuple[float, float]]) -> Effect | None:
    """The change from the first to the second of each pair; None without a pair of positive numbers."""
    logs = [math.log(after / before) for before, after in pairs if before > 0 and after > 0]
    if not logs:
        return None
    mean, spread = fmean(logs), math.inf
    if len(logs) > 1:
        spread = quantile(len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return Effect(_ratio(mean), _ratio(mean - spread), _ratio(mean + spread), len(logs))


def quantile(freedom: int) -> float:
    """The 95 % quantile of Student's t for so many degrees of freedom, at least 1."""
    return T_95[min(freedom, len(T_95)) - 1]


def _ratio(log: float) -> float:
    return math.inf if log == math.inf else math.exp(log) - 1
