"""What `report --follow` and `observe --live` serve: the page of an application while it runs."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_app.commands.plugins import Browsing
from spark_app.errors import UsageError

if TYPE_CHECKING:
    from spark_app.annexes.live.live_page import LivePage
    from spark_app.annexes.live.live_report import LiveReport
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.diagnoses.thresholds import Thresholds
    from spark_app.eventlog.parse.locations import LogPath
    from spark_app.observe.results import LaunchWatcher
    from spark_app.report.report_source import ReportSource
    from spark_app.settings import Settings

LOOK_SECONDS: Final = 1.0
"""How often `report --follow` looks whether the log has its end."""


class Served:
    """A page that is served, as the command that serves it knows it."""

    def __init__(self, page: "LivePage") -> None:
        """Serves a page."""
        self._page = page

    def stop(self) -> None:
        """Renders no more."""
        self._page.stop()

    def end(self, reports: Sequence[str]) -> None:
        """Tells browsers that look where the reports are, and shows them a single one."""
        if not reports:
            self._page.end("The command has ended; there is no report of a Spark application.", None)
            return
        content = None
        with suppress(OSError):
            content = Path(reports[0]).read_bytes() if len(reports) == 1 else None
        many = f"The applications have ended. Their reports: {', '.join(reports)}"
        self._page.end(many if len(reports) > 1 else f"The application has ended. Its report: {reports[0]}", content)


@contextmanager
def command(
    terminal: "Terminal",
    settings: "Settings",
    thresholds: "Thresholds",
    browsing: Browsing,
    watcher: "LaunchWatcher",
) -> Iterator[Served]:
    """Serves the page of the application of an observed command that started last.

    Raises:
        MachineError: The port is taken.
    """
    from spark_app.annexes.live.live_report import LiveReport

    report = LiveReport(watcher.newest_log, settings, thresholds, is_alive=True)
    sentence = "The command runs; this page shows more as soon as it has started a Spark application."
    with _served(terminal, report, browsing, title="Waiting for Spark", sentence=sentence) as page:
        yield page


@contextmanager
def log(
    terminal: "Terminal",
    settings: "Settings",
    thresholds: "Thresholds",
    browsing: Browsing,
    selected: "ReportSource",
) -> Iterator[Served | None]:
    """Serves the page of an application until its log has its end, or Ctrl-C; None if it has ended before.

    Raises:
        UsageError: The log is on another storage.
        MachineError: The port is taken.
    """
    from spark_app.annexes.live.live_report import LiveReport
    from spark_app.eventlog.parse.log_tailer import LogTailer

    file, run = _local(selected.log), selected.run
    if LogTailer(file).is_finished:
        terminal.note("the log is finished: there is nothing to follow")
        yield None
        return
    report = LiveReport(lambda: file, settings, thresholds, run=run.folder if run else None)
    sentence = "The event log is being read; this page shows more as soon as it has the start of an application."
    with _served(terminal, report, browsing, title=file.name, sentence=sentence) as page:
        wait_for_end(file)
        page.stop()
        yield page


@contextmanager
def _served(
    terminal: "Terminal", report: "LiveReport", browsing: Browsing, *, title: str, sentence: str
) -> Iterator[Served]:
    """Serves the report of an application on loopback, and prints its address.

    Raises:
        MachineError: The port is taken.
    """
    from spark_app.annexes.live import live_page
    from spark_app.commands import results
    from spark_app.report.page_server import PageServer

    page = live_page.LivePage(report, live_page.waiting(title, sentence))
    with closing(report), PageServer(browsing.port, page) as server, live_page.serving(server, page):
        terminal.note(f"live report: {server.url}", link=server.url)
        if browsing.opens:
            results.open_report(terminal, server.url)
        yield Served(page)


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


def require_local(location: str) -> None:
    """Refuses to follow a log on another storage, before anything is asked of it.

    Raises:
        UsageError: It is on one.
    """
    from spark_app.eventlog.parse.locations import is_remote

    if is_remote(location):
        raise _remote(location)


def _local(log: "LogPath") -> Path:
    if not isinstance(log, Path):
        raise _remote(str(log))
    return log


def _remote(location: str) -> UsageError:
    from spark_app.eventlog.parse.storage import without_secrets

    where = without_secrets(location)
    return UsageError(f"--follow needs an event log on this machine or in a mounted folder; {where} is neither")


def as_of_now(selected: "ReportSource") -> "ReportSource":
    """The log under the name that it has after its end, where Spark renames it, and what the run has recorded by then.

    Raises:
        UsageError: The log is on another storage.
    """
    from spark_app.eventlog.parse.log_tailer import IN_PROGRESS
    from spark_app.report import run_info
    from spark_app.report.report_source import ReportSource

    file, run = _local(selected.log), run_info.read(selected.run.folder) if selected.run else None
    return ReportSource(file if file.exists() else file.with_name(file.name.removesuffix(IN_PROGRESS)), run)
