"""Real storages on loopback ports: an S3 API, a web server, and the History Server of the installed Spark."""

import contextlib
import json
import os
import re
import secrets
import socket
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from spark_app.spark.java_runtime import spark_home
from tests.polling import poll_until

KEY: Final = "a-key-of-the-test"
SECRET: Final = "a-secret-of-the-test"
_STARTED: Final = re.compile(r"Successfully started service 'HistoryServerUI' on port (\d+)")


@contextlib.contextmanager
def s3() -> Iterator[str]:
    """The URL of an S3 API that keeps its objects in this process."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


class Bucket:
    """A new bucket of an S3 API."""

    def __init__(self, endpoint: str) -> None:
        """Creates it."""
        import boto3

        self.name = f"bucket-{secrets.token_hex(4)}"
        self._client = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id=KEY, aws_secret_access_key=SECRET)
        self._client.create_bucket(Bucket=self.name)

    def put(self, log: Path, folder: str) -> None:
        """Copies a file, or a folder with its files."""
        for file in sorted(log.iterdir()) if log.is_dir() else [log]:
            self.write(f"{folder}/{file.relative_to(log.parent)}", file.read_bytes())

    def write(self, key: str, content: bytes) -> None:
        """Writes an object."""
        self._client.put_object(Bucket=self.name, Key=key, Body=content)

    def delete(self, key: str) -> None:
        """Deletes an object."""
        self._client.delete_object(Bucket=self.name, Key=key)


def require_rights(endpoint: str, *, after: float) -> None:
    """Lets an S3 API ask for known credentials after so many further requests."""
    headers = {"Content-Type": "text/plain"}
    with urlopen(Request(f"{endpoint}/moto-api/reset-auth", str(after).encode(), headers, method="POST")):
        pass


@contextlib.contextmanager
def web(folder: Path) -> Iterator[str]:
    """The URL of a web server of a folder; it has listings and knows no ranges."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Refusing:
    """A web server, or an endpoint of S3, that answers each request with one status.

    Attributes:
        url: Its address.
        requests: What was asked, with the method: `HEAD /bucket/logs`.
    """

    def __init__(self, status: int, code: str) -> None:
        """Listens.

        Args:
            status: The HTTP status of each answer.
            code: The name of the error, which only answers to GET have in their body.
        """
        self.requests: list[str] = []
        body = f"<Error><Code>{code}</Code><Message>Refused.</Message></Error>".encode()

        class Answer(BaseHTTPRequestHandler):
            def do_GET(handler) -> None:  # noqa: N805 - `self` is the server's; the name is http.server's
                self.requests.append(f"{handler.command} {handler.path}")
                handler.send_response(status)
                handler.send_header("Content-Type", "application/xml")
                handler.send_header("Content-Length", str(len(body)))
                handler.end_headers()
                if handler.command == "GET":
                    handler.wfile.write(body)

            do_HEAD = do_GET  # noqa: N815 - the name is http.server's

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> "Refusing":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Says nothing."""


@contextlib.contextmanager
def silent() -> Iterator[str]:
    """The URL of an endpoint that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@contextlib.contextmanager
def history_server(logs: Path, scratch: Path) -> Iterator[str]:
    """The URL of Spark's own History Server of a folder of event logs."""
    properties, said = scratch / "history-server.conf", scratch / "history-server.log"
    properties.write_text(f"spark.history.fs.logDirectory {logs.as_uri()}\nspark.history.ui.port 0\n")
    program = "org.apache.spark.deploy.history.HistoryServer"
    command = [str(spark_home() / "bin" / "spark-class"), program, "--properties-file", str(properties)]
    variables = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    with (
        said.open("wb") as out,
        subprocess.Popen(command, stdout=out, stderr=out, env=variables, cwd=scratch) as process,
    ):
        try:
            poll_until(lambda: bool(_STARTED.search(said.read_text())) or process.poll() is not None, said.read_text)
            yield f"http://127.0.0.1:{_STARTED.findall(said.read_text())[0]}"
        finally:
            process.terminate()


def applications(server: str) -> int:
    """How many applications a History Server lists."""
    with urlopen(f"{server}/api/v1/applications") as answer:
        return len(json.load(answer))
