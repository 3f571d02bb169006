import threading

import pytest

from spark_app.errors import InputError
from spark_app.eventlog.parse import storage

SHOWN = "s3://logs/app-1"


class RefusedError(Exception):
    """What a driver raises if an HTTP request was refused."""

    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(text)
        self.status = status


def failing(*errors: Exception) -> storage.Storage:
    """A storage whose requests fail with one error after the other."""
    waiting = list(errors)

    class Driver:
        def info(self, path: str) -> dict[str, object]:
            if waiting:
                raise waiting.pop(0)
            return {"size": len(path)}

    return storage.Storage(Driver(), patience=2)


def test_an_error_that_may_pass_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost connection, a server that is busy."""
    monkeypatch.setattr(storage, "FIRST_PAUSE_SECONDS", 0.001)
    entry = failing(ConnectionResetError(), RefusedError(503), OSError("busy")).entry("logs/app-1", SHOWN)
    assert entry == storage.FileInfo(is_folder=False, size=10)


def test_a_refusal_is_not_asked_again_and_has_no_secrets() -> None:
    """The words of the driver are told without what follows `?`, users and named secrets."""
    error = RefusedError(403, "https://me:hunter2@host/x?sig=hunter2 token=hunter2")
    with pytest.raises(InputError, match="no permission to read s3://logs/app-1: check the credentials") as raised:
        failing(error).entry("logs/app-1", SHOWN)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("cause", [None, RefusedError(404)])
def test_what_is_missing_is_no_error(cause: Exception | None) -> None:
    """Nor asked again."""
    error = FileNotFoundError("x")
    error.__cause__ = cause
    assert failing(error).entry("logs/app-1", SHOWN) is None


def test_a_request_that_hangs_is_given_up() -> None:
    """However long the driver waits."""
    with pytest.raises(storage.NoAnswerError, match=f"{SHOWN} did not answer within 0.05 s"):
        storage.patiently(SHOWN, threading.Event().wait, patience=0.05)


def test_a_lost_connection_that_a_driver_calls_a_missing_file_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of HTTP does."""
    monkeypatch.setattr(storage, "FIRST_PAUSE_SECONDS", 0.001)
    error = FileNotFoundError("x")
    error.__cause__ = ConnectionResetError()
    assert failing(error).entry("logs/app-1", SHOWN) is not None


def test_an_object_that_ends_with_a_slash_is_a_folder() -> None:
    """`s3a://` writes one for each folder that it makes, such as that of a rolled log; drivers call it a file."""
    names = ("logs/", "logs/eventlog_v2_app-1/", "logs/eventlog_v2_app-1/events_1_app-1")

    class Driver:
        def find(self, path: str, *, detail: bool) -> dict[str, dict[str, object]]:
            return {name: {"type": "file", "size": 0 if name.endswith("/") else 7} for name in names}

    logs = storage.Storage(Driver())
    assert logs.children("logs", "s3://logs") == {"eventlog_v2_app-1": storage.FileInfo(is_folder=True)}
    assert logs.children("logs/eventlog_v2_app-1", SHOWN) == {
        "events_1_app-1": storage.FileInfo(is_folder=False, size=7)
    }


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://hunter2@host/logs?sig=hunter2", "https://host/logs"),
        ("HTTP://me:hun@ter2@host/logs", "HTTP://host/logs"),
        ("s3://me:hunter2@bucket/logs", "s3://bucket/logs"),
        ("abfss://container@account.dfs.core.windows.net/logs", "abfss://container@account.dfs.core.windows.net/logs"),
    ],
)
def test_a_location_is_shown_without_users_of_the_web(location: str, shown: str) -> None:
    """They may be tokens; what looks like one in Azure is the container."""
    assert storage.without_secrets(location) == shown
