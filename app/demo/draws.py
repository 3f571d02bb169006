"""Chance without state: what is drawn depends only on the seed, a purpose and a number.

So any row can be generated again anywhere (a duplicate far from its original costs no memory), and the same seed
gives the same bytes with every version of numpy.
"""

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

BLOCK: Final = 1_024
_GOLDEN_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST_MIX: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MIX: Final = np.uint64(0x94D049BB133111EB)


class Draws:
    """Draws for one seed and scope; each purpose (a column, mostly) is independent of the others."""

    def __init__(self, seed: int, *scope: object) -> None:
        """Draws that depend on the seed and on every part of the scope."""
        self._name = "/".join(str(part) for part in (seed, *scope))

    def integer(self, purpose: str, below: int) -> int:
        """One number in [0, below)."""
        return self._start(purpose) % below

    def below(self, purpose: str, numbers: Ints, limit: int) -> Ints:
        """For each number one draw in [0, limit), with limit < 2**31."""
        return ((self._bits(purpose, numbers) >> np.uint64(33)) * np.uint64(limit) >> np.uint64(31)).astype(np.int64)

    def between(self, purpose: str, numbers: Ints, first: int, last: int) -> Ints:
        """For each number one draw in [first, last]; the limits may be far apart."""
        return first + (self._bits(purpose, numbers) % np.uint64(last - first + 1)).astype(np.int64)

    def unit(self, purpose: str, numbers: Ints) -> Floats:
        """For each number one draw in [0, 1)."""
        return (self._bits(purpose, numbers) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def codes(self, purpose: str, numbers: Ints, percents: Mapping[str, int]) -> Codes:
        """For each number the position of one of the values, each as often as its percentage says."""
        table: Codes = np.repeat(np.arange(len(percents), dtype=np.int8), list(percents.values()))
        chosen: Codes = table[self.below(purpose, numbers, len(table))]
        return chosen

    def _bits(self, purpose: str, numbers: Ints) -> npt.NDArray[np.uint64]:
        """SplitMix64 (Steele, Lea, Flood 2014): its n-th output, from any n at once."""
        mixed = numbers.astype(np.uint64) * _GOLDEN_STEP + np.uint64(self._start(purpose))
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST_MIX
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND_MIX
        return mixed ^ (mixed >> np.uint64(31))

    def _start(self, purpose: str) -> int:
        digest = hashlib.blake2b(f"{self._name}/{purpose}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little")


class Chance:
    """Draws one after another, where what is drawn next depends on what was drawn before."""

    def __init__(self, draws: Draws, purpose: str) -> None:
        """The draws for one purpose, from the first."""
        blocks = (draws.unit(purpose, np.arange(start, start + BLOCK)).tolist() for start in itertools.count(0, BLOCK))
        self._units: Iterator[float] = itertools.chain.from_iterable(blocks)

    def unit(self) -> float:
        """A number in [0, 1)."""
        return next(self._units)

    def between(self, first: int, last: int) -> int:
        """A number from first to last."""
        return first + int(next(self._units) * (last - first + 1))

    def one_of(self, weights: Mapping[str, int]) -> str:
        """One of the keys, as often as its weight says."""
        position = next(self._units) * sum(weights.values())
        until = itertools.accumulate(weights.values())
        return next(key for key, end in zip(weights, until, strict=True) if position < end)
