"""The live page: when it is rendered, what a browser gets of it, and what it is told at the end."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import pytest

from spark_app.annexes.live import live_page
from spark_app.annexes.live.live_page import LivePage, Update
from tests.polling import poll_until


class Rendered:
    """Renders one page after the other; counts them, and notes when each was begun."""

    def __init__(self, *pages: bytes | Exception | None, seconds: float = 0) -> None:
        self._pages, self._seconds = list(pages), seconds
        self.begun: list[float] = []

    def __call__(self) -> bytes | None:
        """The next page; None after the last."""
        self.begun.append(time.monotonic())
        threading.Event().wait(self._seconds)
        page = self._pages.pop(0) if self._pages else None
        if isinstance(page, Exception):
            raise page
        return page


@contextmanager
def running(render: Rendered) -> Iterator[LivePage]:
    """A page that is rendered on a thread of its own."""
    page = LivePage(render, live_page.waiting("soon", "nothing yet"))
    thread = threading.Thread(target=page.run)
    thread.start()
    yield page
    page.stop()
    thread.join(10)


def after(page: LivePage, seen: int) -> Update:
    """What is new."""
    import msgspec

    return msgspec.json.decode(page("/live", {"seen": str(seen)}).body, type=Update)


def test_the_page_waits_for_the_first_one() -> None:
    """A browser gets a page at once, and then what is rendered."""
    with running(Rendered(b"one")) as page:
        assert b"nothing yet" in page("/", {}).body
        update = after(page, 1)
        assert (update.version, update.page, update.ended) == (2, "one", None)
        assert page("/", {}).body == b"one"


def test_nothing_is_rendered_while_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the start, and not after an answer."""
    monkeypatch.setattr(live_page, "PAUSE_SECONDS", 0.5)
    render = Rendered(b"one", b"two")
    with running(render) as page:
        assert render.begun == []
        assert after(page, 1).page == "one"
        threading.Event().wait(1.0)
    assert len(render.begun) == 1


def test_a_browser_without_scripts_gets_the_page_when_it_loads_it_again() -> None:
    """The first page makes the next one be rendered."""
    with running(Rendered(b"one")) as page:
        poll_until(lambda: page("/", {}).body == b"one", "the page")


def test_a_page_that_takes_long_is_rendered_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """It rests five times as long as the last one took."""
    monkeypatch.setattr(live_page, "PAUSE_SECONDS", 0.01)
    render = Rendered(b"one", b"two", seconds=0.2)
    with running(render) as page:
        assert [after(page, 1).page, after(page, 2).page] == ["one", "two"]
    assert render.begun[1] - render.begun[0] >= 0.2 * (1 + live_page.PAUSE_FACTOR)


def test_what_has_not_changed_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request is answered after a while, with the time."""
    monkeypatch.setattr(live_page, "HOLD_SECONDS", 0.1)
    with running(Rendered(b"one")) as page:
        poll_until(lambda: after(page, 0).version == 2, "the first page")
        update = after(page, 2)
    assert (update.version, update.page) == (2, None)
    assert abs(update.time / 1000 - time.time()) < 60


def test_a_failure_is_told_and_the_page_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last page stays; the next one has no trouble."""
    monkeypatch.setattr(live_page, "PAUSE_SECONDS", 0.01)
    with running(Rendered(b"one", ValueError("odd"), b"three")) as page:
        first, second, third = after(page, 1), after(page, 2), after(page, 3)
    assert (first.page, second.page, third.page) == ("one", "one", "three")
    assert second.trouble == "The page is not up to date: ValueError: odd"
    assert third.trouble is None


def test_the_end_is_told_to_who_waits() -> None:
    """At once, with the report; later requests get the same."""
    with running(Rendered(b"one")) as page:
        after(page, 1)
        answers: list[Update] = []
        waiting = threading.Thread(target=lambda: answers.append(after(page, 2)))
        waiting.start()
        page.end("it is over", b"the report")
        waiting.join(10)
    assert [(each.page, each.ended) for each in [*answers, after(page, 2)]] == [("the report", "it is over")] * 2


def test_the_end_waits_for_nobody_who_does_not_look() -> None:
    """A command without a browser ends at once."""
    page = LivePage(Rendered(), b"")
    began = time.monotonic()
    page.end("it is over", None)
    assert time.monotonic() - began < live_page.NOTIFY_SECONDS / 2


@pytest.mark.parametrize("seen", ["", "x", "-1", "٣", "9" * 10, "1.5"])
def test_another_request_is_not_found(seen: str) -> None:
    """No other path, no other version than a number."""
    page = LivePage(Rendered(), b"")
    assert page("/live", {"seen": seen}).status == HTTPStatus.NOT_FOUND
    assert page("/reports/x.html", {}).status == HTTPStatus.NOT_FOUND


def test_the_page_may_only_connect_to_its_server() -> None:
    """Its policy names the hashes of its scripts, and nothing else."""
    page = live_page.waiting("<script>", "soon").decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert "connect-src 'self'" in policy.replace("&#39;", "'")
    assert policy.count("sha256-") == page.count("<script>") == 3
