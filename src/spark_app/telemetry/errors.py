"""Errors inside telemetry are kept in lists: they are never raised into a job and never printed on the terminal."""

import logging
from collections.abc import Callable, Iterator
from typing import Final, ParamSpec

from spark_app.redaction import excerpt
from spark_app.settings import process_environment
from spark_app.telemetry.credentials import Credentials

P = ParamSpec("P")

_MAX_ERRORS: Final = 50
_MAX_LENGTH: Final = 500


class TelemetryErrors(logging.Handler):
    """A bounded list of errors without duplicates; also the handler of the SDK's own log.

    Attributes:
        logged: How many of the errors stand in the log of a run.
        is_listening: Whether records of the SDK's log are kept.
    """

    def __init__(self) -> None:
        """An empty list."""
        super().__init__(level=logging.WARNING)
        self._lines: dict[object, str] = {}
        self._credentials = Credentials(process_environment())
        self.logged = 0
        self.is_listening = True

    def __iter__(self) -> Iterator[str]:
        """All errors, oldest first."""
        return iter(tuple(self._lines.values()))

    def __len__(self) -> int:
        """The number of errors."""
        return len(self._lines)

    def add(self, text: str, *, key: object = None) -> None:
        """Keeps one line, unless the list is full or has a line of the same key (or text)."""
        line = excerpt(self._credentials.hidden(text), _MAX_LENGTH)
        if len(self._lines) < _MAX_ERRORS:
            self._lines.setdefault(key or line, line)

    def unlogged(self) -> list[str]:
        """The errors that were added since the last call of this method."""
        lines = list(self)[self.logged :]
        self.logged += len(lines)
        return lines

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a message of the SDK without its traceback."""
        if self.is_listening:
            self.guard(f"{record.name} logged a record that cannot be rendered", self._keep, record)

    def guard(self, what: str, call: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Whether a call succeeded; an exception is added to the list and not raised."""
        try:
            call(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - telemetry never raises into a job
            self.add(f"{what}: {type(error).__name__}: {error}", key=(what, type(error)))
            return False
        return True

    def _keep(self, record: logging.LogRecord) -> None:
        """Keeps the first record of each log call: later ones differ only in seconds and ports."""
        self.add(f"{record.name}: {record.getMessage()}", key=(record.name, record.msg))


class RunErrors(TelemetryErrors):
    """The errors of one run: a file that cannot be written, a span that cannot be encoded."""

    def __init__(self, process: TelemetryErrors) -> None:
        """An empty list.

        Args:
            process: The errors of the process, such as an endpoint that does not answer. They concern every open run.
        """
        super().__init__()
        self._process = process
        self._process_logged = process.logged

    def unlogged(self) -> list[str]:
        """The errors of the run and of the process that do not stand in the log of this run."""
        of_process = list(self._process)[self._process_logged :]
        self._process_logged += len(of_process)
        self._process.logged = max(self._process.logged, self._process_logged)
        return [*super().unlogged(), *of_process]
