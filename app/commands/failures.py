"""What a failure looks like from outside: an exit code, one line, and a JSON document if it was asked for."""

import errno
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer

from app.commands import cells
from app.errors import EXIT_INTERRUPTED, MachineError, SparkAppError
from app.redaction import redacted

LONGEST: Final = 600
NO_ROOM: Final = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
INTERRUPTED: Final = "interrupted; what was published is whole; give the same command again"


@dataclass(slots=True)
class Asked:
    """What is shown of a failure beside its line.

    Attributes:
        json: A document on standard output.
        debug: The traceback on standard error.
    """

    json: bool = False
    debug: bool = False


class Failure(NamedTuple):
    """An exit code, the kind of failure, and the line that explains it."""

    exit_code: int
    kind: str
    message: str


def failure(error: BaseException) -> Failure:
    """Maps an exception to exit code, kind and message."""
    kind = type(error).__name__
    match error:
        case KeyboardInterrupt():
            return Failure(EXIT_INTERRUPTED, "Interrupted", INTERRUPTED)
        case SparkAppError():
            return Failure(error.exit_code, kind, _one_line(str(error)))
        case typer.TyperException():
            return Failure(error.exit_code, "UsageError", _one_line(error.format_message()).rstrip(".") + _hint(error))
        case OSError() if error.errno in NO_ROOM:
            where = f": {error.filename}" if error.filename else ""
            return Failure(MachineError.exit_code, MachineError.__name__, _one_line(f"{error.strerror}{where}"))
    text = _one_line(_text(error))[:LONGEST]
    return Failure(1, kind, f"a bug: {kind}: {text} ({_log(error)}--debug shows the traceback)")


def asked(words: Iterable[str]) -> Asked:
    """What a command line asks for as long as it is not parsed, if it can be; what follows `--` asks for nothing."""
    ours = set(takewhile(lambda word: word != "--", words))
    return Asked(json="--json" in ours, debug="--debug" in ours)


def report(error: BaseException, asked: Asked) -> int:
    """Tells a failure on standard error, and as JSON on standard output if that was asked for; gives the exit code."""
    told = failure(error)
    if asked.debug:
        _say("".join(traceback.format_exception(error)))
    if asked.json:
        with suppress(OSError):  # the line below tells it all the same
            _document(told, error)
    _say(told.message + "\n" if told.exit_code == EXIT_INTERRUPTED else f"error: {told.message}\n")
    return told.exit_code


def results(error: BaseException) -> list[Any]:
    """The runs that ended before an exception, the one it ended included."""
    return list(getattr(error, "results", ()))


def _say(text: str) -> None:
    with suppress(OSError):  # nobody reads it any more
        sys.stderr.write(text)


def _document(told: Failure, error: BaseException) -> None:
    # The terminal brings rich and msgspec, which a usage error on a terminal need not wait for.
    from app.commands.terminal import Terminal

    runs, about = results(error), {"type": told.kind, "message": told.message}
    more = ({"runs": runs} if runs else {}) | getattr(error, "document", {})
    Terminal().document({"exit_code": told.exit_code, "error": about} | more)


def _text(error: BaseException) -> str:
    """What an exception says; PySpark's own cannot say it any more once their JVM is gone."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever it is, the failure that it hides is what counts
        return str(getattr(error, "_desc", "no message"))


def _one_line(text: str) -> str:
    """The text without secrets and the stack of a JVM, on one line, with nothing a terminal would act on."""
    lines = takewhile(lambda line: not line.lstrip().startswith("at "), text.splitlines())
    return cells.literal(redacted(" ".join(word for line in lines for word in line.split())))


def _hint(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"; see '{context.command_path} --help'" if context else ""


def _log(error: BaseException) -> str:
    folder = next(_folders(error), None)
    return f"its log is in {cells.place(folder)}; " if folder else ""


def _folders(error: BaseException) -> Iterator[Path]:
    """The folder of the run that failed; without one, that of Spark's logs, if there are any."""
    yield from (run.folder for run in reversed(results(error)))
    from app.settings import load_settings

    with suppress(SparkAppError):
        logs = load_settings().home / "logs"
        yield from [logs] if logs.is_dir() else []
