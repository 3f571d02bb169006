"""How the program reports a failure: an exit code, one line, and a JSON document with `--json`."""

import errno
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer

from spark_app.commands import cells
from spark_app.errors import EXIT_INTERRUPTED, MachineError, SparkAppError
from spark_app.redaction import redacted

MAX_CHARACTERS: Final = 600
NO_ROOM: Final = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
STARTED: Final = time.time() - 1
"""When this program started, a second early: file systems round times."""
WITH_SCHEMA: Final = ("observe", "report", "compare")
"""The commands whose document `spark_app.report.results.schema` describes."""
INTERRUPTED: Final = "Interrupted. Published tables are consistent; run the same command again."


@dataclass(slots=True)
class OutputOptions:
    """What a failure shows in addition to its line.

    Attributes:
        json: Print a JSON document on standard output, or write it to this file.
        debug: Print the traceback on standard error.
        verb: The command; empty until it is parsed.
        config: The configuration folder that was given.
    """

    json: bool | Path = False
    debug: bool = False
    verb: str = ""
    config: Path | None = None


class Failure(NamedTuple):
    """The exit code, the kind and the message of a failure."""

    exit_code: int
    kind: str
    message: str


def failure(error: BaseException, config: Path | None = None) -> Failure:
    """Maps an exception to its exit code, kind and message; the configuration tells where its log may be."""
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
    text = _one_line(_text(error))[:MAX_CHARACTERS]
    return Failure(1, kind, f"a bug: {kind}: {text} ({_log(error, config)}--debug shows the traceback)")


def output_options(words: Iterable[str]) -> OutputOptions:
    """The flags of a command line that is not parsed yet; words after `--` belong to another command."""
    flags = set(takewhile(lambda word: word != "--", words))
    return OutputOptions(json="--json" in flags, debug="--debug" in flags)


def report(error: BaseException, options: OutputOptions) -> int:
    """Prints a failure on standard error, and as JSON on standard output if asked for; returns the exit code."""
    reported = failure(error, options.config)
    if options.debug:
        _print("".join(traceback.format_exception(error)))
    if options.json:
        with suppress(OSError):  # the line below still reports it
            _document(reported, error, options)
    _print(reported.message + "\n" if reported.exit_code == EXIT_INTERRUPTED else f"error: {reported.message}\n")
    return reported.exit_code


def results(error: BaseException) -> list[Any]:
    """The runs of a command that failed, the failed one last."""
    return list(getattr(error, "results", ()))


def add(error: Any, document: Mapping[str, Any]) -> None:
    """Gives the JSON document of a failure further keys."""
    error.document = {**getattr(error, "document", {}), **document}


def _print(text: str) -> None:
    with suppress(OSError):  # the reader is gone
        sys.stderr.write(text)


def _document(reported: Failure, error: BaseException, options: OutputOptions) -> None:
    # rich and msgspec are imported only now, so that usage errors answer at once.
    from spark_app.commands.terminal import Terminal, encoded

    runs, summary = results(error), {"type": reported.kind, "message": reported.message}
    details = ({"runs": runs} if runs else {}) | getattr(error, "document", {})
    document = _whole(options.verb) | {"exit_code": reported.exit_code, "error": summary} | details
    if isinstance(options.json, Path):
        options.json.write_bytes(encoded(document))
    else:
        Terminal().document(document)


def _whole(verb: str) -> dict[str, Any]:
    """All keys of the document of a command whose document has a schema; none for other commands."""
    if verb not in WITH_SCHEMA:
        return {}
    import msgspec

    from spark_app.report.results.schema import Results

    empty: dict[str, Any] = msgspec.to_builtins(msgspec.convert({"command": verb}, Results))
    return empty


def _text(error: BaseException) -> str:
    """The message of an exception; those of PySpark raise when their JVM is gone."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the failure to be reported matters more
        return str(getattr(error, "_desc", "no message"))


def _one_line(text: str) -> str:
    """The text on one line, without secrets, JVM stack traces and control characters."""
    lines = takewhile(lambda line: not line.lstrip().startswith("at "), text.splitlines())
    return cells.literal(redacted(" ".join(word for line in lines for word in line.split())))


def _hint(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"; see '{context.command_path} --help'" if context else ""


def _log(error: BaseException, config: Path | None) -> str:
    folder = next(_folders(error, config), None)
    return f"its log is in {cells.shown_path(folder)}; " if folder else ""


def _folders(error: BaseException, config: Path | None) -> Iterator[Path]:
    """The folder of the failed run, or that of Spark's logs, where this command has written something to it."""
    yield from (run.folder for run in reversed(results(error)) if _has_news(run.folder))
    from spark_app.settings import load_settings

    with suppress(SparkAppError):
        logs = load_settings(config).home / "logs"
        yield from [logs] if _has_news(logs) else []


def _has_news(folder: Path) -> bool:
    """Whether a file in a folder was written since this program started."""
    with suppress(OSError):
        return any(file.stat().st_mtime >= STARTED for file in folder.iterdir())
    return False
