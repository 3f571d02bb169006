"""Asks a storage for the files of event logs: through which driver, for how long, and what is wrong if it refuses."""

import errno
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from spark_app.errors import InputError, MachineError
from spark_app.redaction import excerpt

PATIENCE_SECONDS: Final = 30.0
"""How long one request is waited for and repeated."""
FIRST_PAUSE_SECONDS: Final = 0.2
LISTING_SECONDS: Final = 10.0
"""The age at which the listing of a folder that is followed is renewed: the default of Spark's History Server."""
EXTRAS: Final[Mapping[str, str]] = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
    "hdfs": "hdfs",
    "http": "http",
    "https": "http",
}
"""The schemes of locations, and the extra of this program that brings the driver of each."""
_QUERY: Final = re.compile(r"\?[^\s'\")]+")
_USER: Final = re.compile(r"(?:(?<=http://)|(?<=https://))[^/\s]*@|(?<=://)[^/\s]*:[^/\s]*@", re.IGNORECASE)
"""On the web a user without a password may be a token; with others it is a container (`abfss://container@account`)."""
_REFUSED: Final = frozenset({401, 403})
_MALFORMED: Final = 400
"""What S3 answers to an expired token, with the reason in a body that the answer to a HEAD request lacks."""
_GONE: Final = frozenset({404, 410})
_CREDENTIALS: Final = re.compile("credential|token|refresh|authentication", re.IGNORECASE)
"""In the names of errors of drivers: `NoCredentialsError`, `SSOTokenLoadError`, `RefreshError` and others."""
_CONNECTION_REFUSED: Final = f"[Errno {errno.ECONNREFUSED}]"
_WITH_BUCKETS: Final = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss"})
MISSING: Final = "No such file or directory"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file or a folder of a storage.

    Attributes:
        size: Its bytes; None where the storage does not say it.
        modified: The last write, in seconds since the epoch; 0 where it is not known.
    """

    is_folder: bool
    size: int | None = 0
    modified: float = 0.0


class NoAnswerError(InputError):
    """A storage did not answer in time, or nothing listens at its address; it may answer later."""


class Storage:
    """A storage, with what it was last asked about its folders and files: a snapshot, until `refresh`.

    Attributes:
        driver: Its file system of fsspec.
        query: What follows `?` in the URL of a file; it may be a secret.
    """

    def __init__(self, driver: Any, *, query: str = "", bucket: str = "", patience: float = PATIENCE_SECONDS) -> None:
        """Asks nothing yet.

        Args:
            driver: Its file system of fsspec.
            query: What follows `?` in the URL of a file.
            bucket: The bucket or container that all paths are in; empty where the storage has none.
            patience: Seconds that each request may take.
        """
        self.driver, self.query, self._bucket, self._patience = driver, query, bucket, patience
        self._folders: dict[str, dict[str, FileInfo]] = {}
        self._files: dict[str, FileInfo | None] = {}
        self._listed_at: dict[str, float] = {}
        self._quiet_until = 0.0

    def entry(self, path: str, shown: str) -> FileInfo | None:
        """The file or folder of a path; None where nothing is.

        Raises:
            InputError: The storage refuses, or does not answer.
        """
        if not path:
            return FileInfo(is_folder=True)
        folder, _, name = path.rpartition("/")
        if folder in self._folders:
            return self._folders[folder].get(name)
        if path not in self._files:
            try:
                info = self.ask(shown, partial(self.driver.info, path + self.query))
                self._files[path] = file_info(info)
            except FileNotFoundError:
                self._files[path] = None
        return self._files[path]

    def children(self, folder: str, shown: str) -> Mapping[str, FileInfo]:
        """The files and folders in a folder, by their names; none in a folder that is missing.

        Raises:
            InputError: The storage refuses, or does not answer.
        """
        if folder not in self._folders:
            with suppress(FileNotFoundError):
                self._list(folder, shown)
        return self._folders.get(folder, {})

    def refresh(self, folder: str, shown: str) -> None:
        """Lists a folder and those in it again, if the last listing is `LISTING_SECONDS` old.

        Raises:
            FileNotFoundError: There is no such folder.
            InputError: The storage refuses, or does not answer; what it said before stays known.
        """
        if time.monotonic() - self._listed_at.get(folder, -LISTING_SECONDS) >= LISTING_SECONDS:
            self._list(folder, shown)

    def _list(self, folder: str, shown: str) -> None:
        """One recursive listing: object stores give a thousand files an answer, whatever their folders."""
        found = self.ask(shown, partial(self.driver.find, folder, detail=True))
        if not found and folder not in self._listed_at and self.entry(folder, shown) is None:
            raise FileNotFoundError(errno.ENOENT, MISSING, shown)
        inside = f"{folder}/" if folder else ""
        self._folders = {name: known for name, known in self._folders.items() if not f"{name}/".startswith(inside)}
        self._folders[folder] = {}
        self._files.clear()
        self._listed_at[folder] = time.monotonic()
        for path, info in found.items():
            # An object of that name is how Hadoop keeps a folder.
            entry = FileInfo(is_folder=True) if path.endswith("/") else file_info(info)
            self._add(folder, path.rstrip("/"), entry)

    def _add(self, root: str, path: str, entry: FileInfo) -> None:
        while path != root and path:
            above, _, name = path.rpartition("/")
            self._folders.setdefault(above, {}).setdefault(name, entry)
            path, entry = above, FileInfo(is_folder=True)

    def ask(self, shown: str, request: Callable[[], T], *, verb: str = "read") -> T:
        """The answer to a request; see `patiently`. For a while after one without an answer no other is waited for.

        Raises:
            FileNotFoundError: There is nothing at the location, which is in a bucket that exists.
            InputError: The storage refuses, does not answer, or does not have the bucket.
        """
        if time.monotonic() < self._quiet_until:
            raise NoAnswerError(f"{shown} was not asked: its storage did not answer a moment ago")
        try:
            return patiently(shown, request, patience=self._patience, verb=verb)
        except NoAnswerError:
            self._quiet_until = time.monotonic() + LISTING_SECONDS
            raise
        except FileNotFoundError:
            self._require_bucket(shown, verb)
            raise

    def _require_bucket(self, shown: str, verb: str) -> None:
        """Asks for the bucket, until it was there once.

        Raises:
            InputError: It does not exist.
        """
        if not self._bucket:
            return
        try:
            patiently(shown, partial(self.driver.info, self._bucket), patience=self._patience)
        except FileNotFoundError:
            where = "check its name, and the endpoint and the account that this machine is configured for"
            raise InputError(f"cannot {verb} {shown}: there is no bucket {self._bucket!r}; {where}") from None
        except InputError:  # who may read its objects need not be allowed to ask for the bucket
            pass
        self._bucket = ""


def patiently(shown: str, request: Callable[[], T], *, patience: float, verb: str = "read") -> T:
    """The answer to a request, which is repeated after errors that may pass.

    Args:
        shown: The location that is asked for, without secrets.
        request: Asks the storage; it may hang.
        patience: Seconds for all attempts.
        verb: What is done there, as messages name it.

    Raises:
        FileNotFoundError: There is nothing at the location.
        InputError: The storage refuses; the message has no secrets.
        NoAnswerError: It does not answer in time.
    """
    until, pause = time.monotonic() + patience, FIRST_PAUSE_SECONDS
    while True:
        try:
            return _within(until - time.monotonic(), request)
        except Exception as error:  # noqa: BLE001 - each driver raises its own
            cause = _cause(error)
        if cause is None:
            raise FileNotFoundError(errno.ENOENT, MISSING, shown)
        if (refusal := _refusal(cause, shown, verb)) is not None:
            raise InputError(refusal)
        if (unreachable := _unreachable(cause)) is not None:
            raise NoAnswerError(f"cannot reach {shown}: {unreachable} ({_text(cause)})")
        if time.monotonic() + pause >= until:
            raise NoAnswerError(f"{shown} did not answer within {patience:g} s: {_text(cause)}")
        time.sleep(pause)
        pause *= 2


def open_storage(location: str, *, patience: float = PATIENCE_SECONDS) -> tuple[Storage, str]:
    """The storage of a location, and the path of the location there.

    Raises:
        InputError: The scheme is unknown, or the location is not complete.
        MachineError: The driver is not installed; the message names the extra.
    """
    scheme = location.partition("://")[0].lower()
    shown = without_secrets(location)
    if scheme not in EXTRAS:
        raise InputError(f"cannot read {shown}: known are {', '.join(f'{known}://' for known in EXTRAS)}")
    location, _, query = location.partition("?")
    try:
        import fsspec

        driver, path = _within(patience, partial(fsspec.core.url_to_fs, location, **_options(scheme)))  # some connect
    except ImportError as error:
        extra = f"install spark-app[{EXTRAS[scheme]}]"
        raise MachineError(f"cannot read {shown}: its driver is not installed; {extra} ({_text(error)})") from None
    except Exception as error:  # noqa: BLE001 - each driver raises its own
        raise InputError(_refusal(error, shown) or f"cannot open {shown}: {_text(error)}") from None
    driver.retries = 1  # of the drivers of S3 and GCS: `patiently` repeats requests
    bucket = path.partition("/")[0] if scheme in _WITH_BUCKETS else ""
    return Storage(driver, query=f"?{query}" if query else "", bucket=bucket, patience=patience), path


def without_secrets(location: str) -> str:
    """A URL without user, password and query, as messages, reports and records show it.

    Masked ones (`redaction`) would make another URL of it; and a query may be signed, by parameters of any name.
    """
    return _USER.sub("", location.partition("?")[0])


def _options(scheme: str) -> dict[str, Any]:
    """Options of a driver: it keeps no listings of its own, and repeats no request, as `patiently` does."""
    once = {"config_kwargs": {"retries": {"total_max_attempts": 1}}} if scheme in ("s3", "s3a") else {}
    return {} if scheme == "hdfs" else {"use_listings_cache": False, "skip_instance_cache": True} | once


def file_info(info: Mapping[str, Any]) -> FileInfo:
    """A file or a folder, of what a driver says of it."""
    is_listing = info.get("mimetype") == "text/html"  # the driver of HTTP calls everything a file
    return FileInfo(is_listing or info.get("type") == "directory", info.get("size"), _modified(info))


def _modified(info: Mapping[str, Any]) -> float:
    """The time of the last write, under the name that a driver has for it."""
    time = next((info[key] for key in ("LastModified", "last_modified", "mtime", "updated") if info.get(key)), 0.0)
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    return time.timestamp() if isinstance(time, datetime) else float(time)


def _within(seconds: float, request: Callable[[], T]) -> T:
    """The answer to a request that may hang: a thread makes it, for which the caller waits no longer than this."""
    answer: Future[T] = Future()

    def make() -> None:
        try:
            answer.set_result(request())
        except BaseException as error:  # noqa: BLE001 - the thread that waits for the answer raises it
            answer.set_exception(error)

    threading.Thread(target=make, name="storage", daemon=True).start()
    return answer.result(timeout=max(0.0, seconds))


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _cause(error: Exception) -> BaseException | None:
    """What is wrong; None where nothing but the file is missing.

    The driver of HTTP calls every failure a missing file, and has the failure as its cause.
    """
    first = next((cause for cause in _causes(error) if _status(cause) is not None), None)
    if first is not None and _status(first) in _GONE:
        return None
    if not isinstance(error, FileNotFoundError):
        return first or error
    of_network = ConnectionError | TimeoutError | socket.gaierror
    return first or next((cause for cause in _causes(error) if isinstance(cause, of_network)), None)


def _status(error: BaseException) -> int | None:
    """The HTTP status of an error, under the name that a driver has for it."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        return _number(response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
    names = ("status", "status_code", "code")
    return next((status for name in names if (status := _number(getattr(error, name, None))) is not None), None)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _refusal(error: BaseException, shown: str, verb: str = "read") -> str | None:
    """Why a request need not be repeated; None where it may succeed later."""
    if isinstance(error, PermissionError) or _status(error) in _REFUSED:
        return f"no permission to {verb} {shown}: check the credentials of this machine ({_text(error)})"
    if _status(error) == _MALFORMED:
        why = "its token has expired or is not valid, or the region or the endpoint is wrong"
        return f"no permission to {verb} {shown}: check the credentials of this machine: {why} ({_text(error)})"
    if _CREDENTIALS.search(type(error).__name__):
        return f"no credentials for {shown}: this machine has none, or they have expired ({_text(error)})"
    if isinstance(error, ValueError | TypeError | ImportError):
        return f"cannot {verb} {shown}: {_text(error)}"
    return None


def _unreachable(error: BaseException) -> str | None:
    """Why a request need not be repeated now; None where it may be under way."""
    causes = list(_causes(error))
    if any(isinstance(each, ConnectionRefusedError) or _CONNECTION_REFUSED in str(each) for each in causes):
        return "the connection is refused: nothing listens at its host and port"
    if any(isinstance(each, socket.gaierror) for each in causes):
        return "its host has no address: check the name"
    return None


def _text(error: BaseException) -> str:
    """An error of a driver in one line without secrets."""
    return excerpt(_USER.sub("", _QUERY.sub("", str(error))), 300) or type(error).__name__
