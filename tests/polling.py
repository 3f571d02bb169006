"""The one place where tests wait: until something holds, with a message of what is missing."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SHARE: Final = 20
"""The next look comes after this part of the time waited so far: soon at first, never a storm of looks."""
LONGEST_SECONDS: Final = 1.0


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
        seconds: The longest time to wait.
        pause: Seconds between two looks, where a moment must not be missed; they grow with the time waited if None.

    Raises:
        AssertionError: It does not hold in time; says what is missing.
    """
    began = time.monotonic()
    while not holds():
        waited = time.monotonic() - began
        assert waited < seconds, missing() if callable(missing) else missing
        time.sleep(min(LONGEST_SECONDS, 0.02 + waited / SHARE) if pause is None else pause)


@contextmanager
def lets_end(file: Path) -> Iterator[None]:
    """Makes a file in the end, also after a failure, for which a program waits that would run for ever without."""
    try:
        yield
    finally:
        file.touch()
