import io
import threading
from typing import Any

import pytest

from spark_app.eventlog.parse import storage
from spark_app.eventlog.parse.remote import RemoteBytes, RemotePath

DATA = bytes(range(256)) * 4096


class LateDriver:
    """A storage with one file; one of the reads of it answers only when it may."""

    async_impl = False
    protocol = "late"

    def __init__(self, *, late_read: int) -> None:
        self.may_answer, self.answered = threading.Event(), threading.Event()
        self._late_read, self._reads = late_read, 0

    def info(self, path: str) -> dict[str, Any]:
        """What it says of the file."""
        return {"size": len(DATA)}

    def open(self, path: str, mode: str) -> io.BytesIO:
        """A handle of the file."""
        driver = self

        class Handle(io.BytesIO):
            def read(self, most: int | None = -1, /) -> bytes:
                driver._reads += 1
                if driver._reads != driver._late_read:
                    return super().read(most)
                driver.may_answer.wait()
                block = super().read(most)
                driver.answered.set()
                return block

        return Handle(DATA)


@pytest.mark.parametrize("late_read", [1, 2])
def test_an_answer_that_comes_too_late_loses_no_bytes(late_read: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next read asks for the same bytes again, whenever the other answer comes."""
    monkeypatch.setattr(storage, "LISTING_SECONDS", 0.0)
    of_others = set(threading.enumerate())  # other tests leave requests that nobody ever answers
    driver = LateDriver(late_read=late_read)
    path = RemotePath("logs/app-1", "late://logs/app-1", storage.Storage(driver, patience=0.5))
    reader = RemoteBytes(path, renamed=path)
    read = b"" if late_read == 1 else reader.read(len(DATA))
    with pytest.raises(storage.NoAnswerError):
        reader.read(len(DATA))
    driver.may_answer.set()
    assert driver.answered.wait(30)
    for thread in set(threading.enumerate()) - of_others:
        thread.join(30)
        assert not thread.is_alive()
    while chunk := reader.read(len(DATA)):
        read += chunk
    assert read == DATA
