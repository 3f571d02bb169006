"""The one place where tests wait: until something holds, with a message of what is missing.

A limit is that of a quiet machine with usual processors. It grows with how much slower the machine is at that moment.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SHARE: Final = 20
"""The next look comes after this part of the time waited so far: soon at first, never a storm of looks."""
LONGEST_SECONDS: Final = 1.0
ROUNDS: Final = 1_000_000
QUIET_SECONDS: Final = 0.1
"""What so many rounds of `slowness` take on the two processors of a quiet machine (measured: 0.08 to 0.1 s)."""


def poll_until(
    holds: Callable[[], bool],
    missing: str | Callable[[], object],
    *,
    seconds: float = 120,
    pause: float | None = None,
) -> None:
    """Waits until something holds.

    Args:
        holds: Whether it does.
        missing: What is missing, or gives it when it is.
        seconds: The longest time to wait on a quiet machine.
        pause: Seconds between two looks, where a moment must not be missed; they grow with the time waited if None.

    Raises:
        AssertionError: It does not hold in time; says what is missing.
    """
    began, limit = time.monotonic(), seconds
    while not holds():
        waited = time.monotonic() - began
        if waited >= limit:
            limit = patience(seconds)
            assert waited < limit, f"after {waited:.0f} s: {missing() if callable(missing) else missing}"
        time.sleep(min(LONGEST_SECONDS, 0.02 + waited / SHARE) if pause is None else pause)


def patience(seconds: float) -> float:
    """The longest time to wait now, for what may take some seconds on a quiet machine."""
    return seconds * slowness()


def slowness() -> float:
    """How many times longer a computation takes by the clock than on a quiet machine; at least 1.

    Both a slow processor and other programs that want it make it grow.
    """
    began, value = time.monotonic(), 1
    for _ in range(ROUNDS):
        value = value * 3 % 1_000_003
    return max(1.0, (time.monotonic() - began) / QUIET_SECONDS)


@contextmanager
def lets_end(file: Path) -> Iterator[None]:
    """Makes a file in the end, also after a failure, for which a program waits that would run for ever without."""
    try:
        yield
    finally:
        file.touch()
