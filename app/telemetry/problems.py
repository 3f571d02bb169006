"""What goes wrong inside telemetry is kept here; it is never raised and never reaches the terminal."""

import logging
from collections.abc import Callable, Iterator
from typing import Final, ParamSpec

P = ParamSpec("P")

_KEPT: Final = 50
_LENGTH: Final = 500


class Problems(logging.Handler):
    """A short list of what went wrong, each said once; also the handler of the SDK's own log."""

    def __init__(self) -> None:
        """An empty list."""
        super().__init__(level=logging.WARNING)
        self._told: list[str] = []
        self._reported = 0

    def __iter__(self) -> Iterator[str]:
        """Everything told so far, oldest first."""
        return iter(tuple(self._told))

    def tell(self, text: str) -> None:
        """Keeps one line, unless it was told before or there are too many."""
        line = " ".join(text.split())[:_LENGTH]
        if line not in self._told and len(self._told) < _KEPT:
            self._told.append(line)

    def unreported(self) -> list[str]:
        """What was told since the last call of this method."""
        new = self._told[self._reported :]
        self._reported += len(new)
        return new

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a message of the SDK; its traceback is of no use to whoever runs a job."""
        try:
            self.tell(f"{record.name}: {record.getMessage()}")
        except Exception:  # noqa: BLE001 - a log call with wrong arguments
            self.tell(f"{record.name}: {record.msg}")

    def guard(self, what: str, call: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Whether a call went well; if not, that is told and nothing is raised."""
        try:
            call(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - telemetry never raises into a job
            self.tell(f"{what}: {type(error).__name__}: {error}")
            return False
        return True
