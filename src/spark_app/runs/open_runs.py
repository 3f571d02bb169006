"""Which runs of an application last at the same time: what its driver does then is of no single one of them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class OpenRun:
    """A run; `is_alone` says whether no other has lasted at any time of it until now."""

    is_alone: bool = True


class OpenRuns:
    """The runs of an application that have not ended; each may have a thread of its own."""

    def __init__(self) -> None:
        """None has begun."""
        self._lock = threading.Lock()
        self._open: list[OpenRun] = []

    @contextmanager
    def opened(self) -> Iterator[OpenRun]:
        """A run, while it lasts."""
        run = OpenRun()
        with self._lock:
            self._open.append(run)
            if len(self._open) > 1:
                for each in self._open:
                    each.is_alone = False
        try:
            yield run
        finally:
            with self._lock:
                self._open.remove(run)
