"""The one place where tests wait: until something holds, with a message of what is missing."""

import time
from collections.abc import Callable


def poll_until(holds: Callable[[], bool], missing: str, *, seconds: float = 60) -> None:
    """Waits until something holds.

    Raises:
        AssertionError: It does not hold in time; says what is missing.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, missing
        time.sleep(0.02)
