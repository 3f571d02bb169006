"""What `report --follow` and `observe --live` have in common: a page that is served while an application runs."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_app.commands import results
from spark_app.errors import UsageError

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.parse.locations import LogPath
    from spark_app.observe.live import LiveReport
    from spark_app.report.served.live import LivePage

LOOK_SECONDS: Final = 1.0
"""How often `report --follow` looks whether the log has its end."""


def require(*, flag: str, is_given: bool, port: int) -> None:
    """Refuses a port without a page.

    Raises:
        UsageError: There is one; the message names the option that serves a page.
    """
    if port and not is_given:
        raise UsageError(f"--port is the port of the live page: give {flag}, too")


@contextmanager
def served(
    terminal: "Terminal", report: "LiveReport", *, port: int, title: str, sentence: str, open_: bool
) -> Iterator["LivePage"]:
    """Serves the report of an application on loopback, and prints its address.

    Raises:
        MachineError: The port is taken.
    """
    from spark_app.report.served import live
    from spark_app.report.served.server import PageServer

    page = live.LivePage(report, live.waiting(title, sentence))
    with closing(report), PageServer(port, page) as server, live.serving(server, page):
        terminal.note(f"live report: {server.url}", link=server.url)
        if open_:
            results.open_report(terminal, server.url)
        yield page


def end(page: "LivePage | None", reports: Sequence[str]) -> None:
    """Tells browsers that look where the reports are, and shows them a single one; without a page, does nothing."""
    if page is None:
        return
    if not reports:
        page.end("The command has ended; there is no report of a Spark application.", None)
        return
    content = None
    with suppress(OSError):
        content = Path(reports[0]).read_bytes() if len(reports) == 1 else None
    many = f"The applications have ended. Their reports: {', '.join(reports)}"
    page.end(many if len(reports) > 1 else f"The application has ended. Its report: {reports[0]}", content)


def wait_for_end(log: "LogPath") -> None:
    """Waits until an application has closed its log, the log is gone, or Ctrl-C.

    A handler notes Ctrl-C, since Python loses a KeyboardInterrupt that it raises while it frees an object.
    """
    import signal
    from queue import Empty, SimpleQueue

    from spark_app.eventlog.parse.log_tailer import LogTailer, parts

    interrupts = SimpleQueue[None]()
    before = signal.signal(signal.SIGINT, lambda *_: interrupts.put(None))
    try:
        tailer = LogTailer(log)
        while parts(log) and not tailer.is_finished:
            with suppress(Empty):
                return interrupts.get(timeout=LOOK_SECONDS)
    finally:
        signal.signal(signal.SIGINT, before)


def require_follow(location: str, *, is_given: bool, port: int) -> None:
    """Refuses to follow a log on another storage, before anything is asked of it.

    Raises:
        UsageError: It is on one, or there is a port without a page.
    """
    from spark_app.eventlog.parse.locations import is_remote

    require(flag="--follow", is_given=is_given, port=port)
    if is_given and is_remote(location):
        raise _remote(location)


def local(log: "LogPath") -> Path:
    """A log that can be followed.

    Raises:
        UsageError: It is on another storage.
    """
    if not isinstance(log, Path):
        raise _remote(str(log))
    return log


def _remote(location: str) -> UsageError:
    from spark_app.eventlog.parse.storage import without_secrets

    where = without_secrets(location)
    return UsageError(f"--follow needs an event log on this machine or in a mounted folder; {where} is neither")


def finished(log: Path) -> Path:
    """Where a log is by now: Spark renames it at its end."""
    from spark_app.eventlog.parse.log_tailer import IN_PROGRESS

    return log if log.exists() else log.with_name(log.name.removesuffix(IN_PROGRESS))
