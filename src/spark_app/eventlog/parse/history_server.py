"""Event logs that Spark's History Server hands out: an archive with all attempts of an application.

The server packs the archive for each request, in no order and without its length, so no part of it can be asked for:
it is kept in a temporary file without a name, packed as it came, and read from there.
"""

import base64
import json
import re
import shutil
import tempfile
import weakref
import zipfile
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from typing import IO, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from spark_app.errors import InputError
from spark_app.eventlog.parse.remote import RemotePath
from spark_app.eventlog.parse.storage import PATIENCE_SECONDS, Storage, patiently, without_secrets

API: Final = "/api/v1/applications"
_APPLICATION: Final = re.compile(r"(.*?)(?:/history|/api/v1/applications)/([^/]+)(?:/(\d+))?(?:/.*)?")
_COPY_BYTES: Final = 1024 * 1024


class HistoryApplication(NamedTuple):
    """An application of a History Server; without an id, its newest one.

    Attributes:
        server: The URL of the server, which may hold a password.
        id: The id of the application.
        attempt: One attempt of it; None for all.
    """

    server: str
    id: str | None = None
    attempt: str | None = None


def application(location: str) -> HistoryApplication | None:
    """The application that the URL of a page or of the API of a History Server names; None for any other URL."""
    parts = urlsplit(location)
    if parts.scheme not in ("http", "https"):
        return None
    server = f"{parts.scheme}://{parts.netloc}"
    if parts.path in ("", "/"):
        return HistoryApplication(server)
    match = _APPLICATION.fullmatch(parts.path)
    return HistoryApplication(server + match[1], match[2], match[3]) if match else None


def logs(app: HistoryApplication, *, patience: float = PATIENCE_SECONDS) -> RemotePath:
    """The folder of the logs of an application.

    Raises:
        InputError: The server has no such application, refuses, or does not answer.
    """
    from fsspec.implementations.zip import ZipFileSystem

    id_ = app.id or _newest(app.server, patience)
    address = "/".join(filter(None, (app.server + API, id_, app.attempt, "logs")))
    try:
        archive = _archive(address, patience)
    except FileNotFoundError as error:
        raise InputError(f"no application {id_} on the History Server {without_secrets(app.server)}") from error
    storage = Storage(ZipFileSystem(archive), patience=patience)
    weakref.finalize(storage, archive.close)
    return RemotePath("", without_secrets(address), storage)


def _newest(server: str, patience: float) -> str:
    """The id of the application that ended last.

    Raises:
        InputError: There is none, or the server is none of Spark.
    """
    shown = without_secrets(server)
    try:
        with _answer(f"{server}{API}?limit=1", patience) as answer:
            return str(json.loads(answer.read(_COPY_BYTES))[0]["id"])
    except IndexError as error:
        raise InputError(f"the History Server {shown} has no application") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{shown} is no History Server of Spark: name a log, as in {shown}/FOLDER/LOG") from error


def _archive(address: str, patience: float) -> IO[bytes]:
    """The archive at an address in a temporary file; asked for twice, if the first answer breaks off.

    Raises:
        FileNotFoundError: The server has nothing at the address.
        InputError: The server refuses, does not answer, or breaks off.
    """
    for _ in range(2):
        with _answer(address, patience) as answer:
            archive = tempfile.TemporaryFile(prefix="spark-app-")  # noqa: SIM115 - it lives as long as its log is read
            with suppress(HTTPException, ConnectionError, TimeoutError):
                shutil.copyfileobj(answer, archive, _COPY_BYTES)
        if zipfile.is_zipfile(archive):
            return archive
        archive.close()
    raise InputError(f"{without_secrets(address)} broke off, or gave no archive of event logs")


def _answer(address: str, patience: float) -> HTTPResponse:
    """The answer of a server, of which nothing is read yet; each read waits as long as `patience`.

    Raises:
        FileNotFoundError: The server has nothing at the address.
        InputError: The server refuses, or does not answer.
    """
    parts = urlsplit(address)
    request = Request(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl())
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")

    def ask() -> HTTPResponse:
        try:
            answer: HTTPResponse = urlopen(request, timeout=patience)
        except HTTPError as error:
            error.close()
            raise
        return answer

    return patiently(without_secrets(address), ask, patience=patience)
