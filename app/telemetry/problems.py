"""What goes wrong inside telemetry is kept here; it is never raised and never reaches the terminal."""

import logging
from collections.abc import Callable, Iterator
from typing import Final, ParamSpec

from app.redaction import redacted
from app.settings import process_environment
from app.telemetry.credentials import Credentials

P = ParamSpec("P")

_KEPT: Final = 50
_LENGTH: Final = 500


class Problems(logging.Handler):
    """A short list of what went wrong, each said once; also the handler of the SDK's own log."""

    def __init__(self) -> None:
        """An empty list."""
        super().__init__(level=logging.WARNING)
        self._told: dict[object, str] = {}
        self._credentials = Credentials(process_environment())
        self.reported = 0
        self.is_listening = True

    def __iter__(self) -> Iterator[str]:
        """Everything told so far, oldest first."""
        return iter(tuple(self._told.values()))

    def tell(self, text: str, *, key: object = None) -> None:
        """Keeps one line, unless one of the same key (or text) was told before or there are too many."""
        line = redacted(self._credentials.hidden(" ".join(text.split())))[:_LENGTH]
        if len(self._told) < _KEPT:
            self._told.setdefault(key or line, line)

    def unreported(self) -> list[str]:
        """What was told since the last call of this method."""
        new = list(self)[self.reported :]
        self.reported += len(new)
        return new

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a message of the SDK; its traceback is of no use to whoever runs a job."""
        if self.is_listening:
            self.guard(f"{record.name} logged what cannot be rendered", self._keep, record)

    def guard(self, what: str, call: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Whether a call went well; if not, that is told and nothing is raised."""
        try:
            call(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - telemetry never raises into a job
            self.tell(f"{what}: {type(error).__name__}: {error}", key=(what, type(error)))
            return False
        return True

    def _keep(self, record: logging.LogRecord) -> None:
        """Keeps the first record of each log call: the next ones differ in seconds and ports."""
        self.tell(f"{record.name}: {record.getMessage()}", key=(record.name, record.msg))
