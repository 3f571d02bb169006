"""A page that is rendered again while a browser shows it, at most for a share of the time."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec

from spark_app.annexes.live.now import now
from spark_app.report.page import Frame, assets, environment, script, sections_of
from spark_app.report.page_server import Answer, PageServer, refusal
from spark_app.report.section import Section

Render = Callable[[], bytes | None]
"""Makes the page anew; None where nothing has changed."""
PAUSE_SECONDS: Final = 1.0
"""The least time between two renderings."""
PAUSE_FACTOR: Final = 5
"""How many times as long as the last rendering took nothing is rendered: at most a sixth of one core."""
HOLD_SECONDS: Final = 10.0
"""How long a request waits for something new."""
NOTIFY_SECONDS: Final = 1.0
"""How long the end of a command may wait for a browser that looks, to tell it."""
GAP_SECONDS: Final = 3.0
"""A browser that asked later than this ago looks at the page still."""

FRAME: Final = Frame(
    "live.html.j2",
    first=[Section("now", lambda about: now(about.scope), "Now")],
    content={"live_script": script(Path(__file__).with_name("live.js"))},
    is_live=True,
)
"""Of the page while the application runs: it says first what that does now."""


class Update(msgspec.Struct):
    """What a browser gets that asks for what is new.

    Attributes:
        version: Of the page; a browser asks for what came after it.
        time: Of this machine, in milliseconds since the epoch: its clock, and not the browser's, is that of the log.
        page: The page; None where it is the version that the browser has.
        trouble: Why the page cannot be rendered; None where it can.
        ended: What a person must know after the end: a sentence; None before it.
    """

    version: int
    time: float
    page: str | None
    trouble: str | None
    ended: str | None


class LivePage:
    """Answers requests with the page as it was rendered last, and renders it while there are any."""

    def __init__(self, render: Render, waiting: bytes) -> None:
        """Renders nothing yet.

        Args:
            render: Makes the page anew; called by one thread, the one that `run`s.
            waiting: The page before the first one.
        """
        self._render, self._page = render, waiting
        self._version = 1
        self._trouble: str | None = None
        self._ended: str | None = None
        self._changed = threading.Condition()
        self._waiting = 0
        self._is_asked = self._is_stopped = self._is_notified = False
        self._asked_at = -GAP_SECONDS

    def __call__(self, path: str, query: Mapping[str, str]) -> Answer:
        """The page, or what is new of it."""
        if path == "/":
            self._ask()
            return Answer(self._page)
        seen = query.get("seen", "")
        if path != "/live" or not (seen.isascii() and seen.isdecimal()) or len(seen) > 9:
            return refusal(HTTPStatus.NOT_FOUND, "there is no such page")
        return Answer(msgspec.json.encode(self._after(int(seen))), kind="application/json")

    def _ask(self) -> None:
        """Has the page rendered: also for a browser without scripts, which loads it again by hand."""
        with self._changed:
            self._is_asked = True
            self._changed.notify_all()

    def _after(self, seen: int) -> Update:
        """Waits for a later version than the one that was seen."""
        with self._changed:
            self._asked_at = time.monotonic()
            self._waiting, self._is_asked = self._waiting + 1, True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._version > seen or self._ended is not None, HOLD_SECONDS)
            self._waiting -= 1
            self._asked_at = time.monotonic()
            self._is_notified = self._ended is not None
            self._changed.notify_all()
            page = self._page.decode("utf-8", "replace") if self._version > seen else None
            return Update(self._version, time.time() * 1000, page, self._trouble, self._ended)

    def run(self) -> None:
        """Renders while there are requests, until `stop`."""
        while self._is_wanted():
            began = time.monotonic()
            self._render_once()
            rest = max(PAUSE_SECONDS, PAUSE_FACTOR * (time.monotonic() - began))
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopped, rest)

    def _is_wanted(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_asked or self._is_stopped)
            self._is_asked = False
            return not self._is_stopped

    def _render_once(self) -> None:
        try:
            page, trouble = self._render(), None
        except Exception as error:  # noqa: BLE001 - the page is no reason for a command to fail
            page, trouble = None, f"The page is not up to date: {type(error).__name__}: {error}"
        with self._changed:
            if not self._is_stopped and (page is not None or trouble != self._trouble):
                self._page, self._trouble = page or self._page, trouble
                self._version += 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Renders no more; requests wait for `end`."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def end(self, sentence: str, page: bytes | None) -> None:
        """Tells browsers that look what came of it; waits a moment for one that is about to ask.

        Args:
            sentence: What a person must know.
            page: The last page; None keeps the one that there is.
        """
        self.stop()
        with self._changed:
            self._page, self._ended, self._trouble = page or self._page, sentence, None
            self._version += 1
            self._changed.notify_all()
            if self._waiting or time.monotonic() - self._asked_at < GAP_SECONDS:
                self._changed.wait_for(lambda: self._is_notified and not self._waiting, NOTIFY_SECONDS)


def waiting(title: str, sentence: str) -> bytes:
    """The page before there is one of an application."""
    content = {"title": title, "sentence": sentence, **FRAME.content, **assets(sections_of(FRAME))}
    return environment().get_template("waiting.html.j2").render(content).encode()


@contextmanager
def serving(server: PageServer, page: LivePage) -> Iterator[None]:
    """Serves a page beside what the command does."""
    server.start(page.run)
    try:
        yield
    finally:
        page.stop()
        server.stop(NOTIFY_SECONDS)
