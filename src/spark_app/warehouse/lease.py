"""A lock on S3, which has none: an object that its holder keeps writing, and that another takes over once that ends.

Each write is a conditional put: it replaces the very object that its writer has read (`If-Match`), or is the first one
(`If-None-Match`). So two processes hold a lock at once only if one of them is held still for longer than the lease. No
clock is compared with that of another machine: a waiting run measures for how long the object stays the same.
"""

import json
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Protocol

from py4j.protocol import Py4JError

from spark_app.warehouse.s3_object import Stored

LOG: Final = logging.getLogger(__name__)
FREE: Final = "free"
"""The word that the holder leaves in the object at the end; objects stay, as lock files do."""


@dataclass(frozen=True)
class Times:
    """Seconds of a lock.

    Attributes:
        lease: A holder that has not written its object for so long is dead.
        renewal: It writes it as often as that.
        poll: Whoever waits looks as often as that.
        old: The holder of an object that old is dead: S3 refuses requests by a clock that is more than 15 minutes off.
    """

    lease: float = 30
    renewal: float = 5
    poll: float = 1
    old: float = 1800


TIMES: Final = Times()


class ConditionalObject(Protocol):
    """An object of a store that writes it on conditions."""

    def read(self) -> Stored | None:
        """The object; None where it does not exist."""

    def write(self, content: bytes, *, over: str | None) -> str | None:
        """Replaces the object of an ETag, or writes the first one; its ETag, or None if another writer was faster."""


@contextmanager
def lease(
    target: ConditionalObject, name: str, *, on_wait: Callable[[], None] | None = None, times: Times = TIMES
) -> Iterator[None]:
    """Holds the lock that an object is, waiting for another holder to end.

    Args:
        target: The object.
        name: What is locked, for the log.
        on_wait: Is called once if another process holds the lock and is alive.
        times: Its seconds.
    """
    held = _Held(target, name, _acquired(target, on_wait, times))
    ended = threading.Event()
    renewing = threading.Thread(target=held.renew, args=(ended, times.renewal), name="renews a lock", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()
        held.release()


def _acquired(target: ConditionalObject, on_wait: Callable[[], None] | None, times: Times) -> str:
    """The ETag of the object that this process has written as the holder."""
    seen, since, is_told = "", time.monotonic(), False
    while True:
        found = target.read()
        if found is None or _is_free(found, times) or (found.etag == seen and time.monotonic() - since > times.lease):
            etag = target.write(_content("held"), over=found.etag if found else None)
            if etag is not None:
                return etag
            continue
        if found.etag != seen:
            if seen and on_wait is not None and not is_told:  # it was written while we looked on
                on_wait()
                is_told = True
            seen, since = found.etag, time.monotonic()
        time.sleep(times.poll)


def _is_free(found: Stored, times: Times) -> bool:
    return found.age > times.old or json.loads(found.content)["state"] == FREE


def _content(state: str) -> bytes:
    """A word on the state, unlike any other content; who it is from is for people."""
    owner = socket.gethostname()
    return json.dumps({"state": state, "host": owner, "write": secrets.token_hex(16)}).encode()


@dataclass
class _Held:
    """A lock that this process holds, by the object that it has written last."""

    target: ConditionalObject
    name: str
    etag: str | None

    def renew(self, ended: threading.Event, seconds: float) -> None:
        """Writes the object again and again; one that cannot be reached is written the next time."""
        while self.etag is not None and not ended.wait(seconds):
            with suppress(Py4JError, OSError):
                self.etag = self.target.write(_content("held"), over=self.etag)
        if self.etag is None:
            LOG.warning("another process has taken over the lock of %s: this one stood still for too long", self.name)

    def release(self) -> None:
        """Lets others have it at once; if the JVM has died, they wait for the lease to end."""
        if self.etag is not None:
            with suppress(Py4JError, OSError):
                self.target.write(_content(FREE), over=self.etag)
