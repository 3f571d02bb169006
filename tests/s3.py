"""A real S3 server for tests: versitygw, on PATH as the programs of the stack are. Its buckets are folders.

Sessions and programs of tests get the jars of S3 by their class path: the environment stays as it is.
"""

import os
import secrets
import select
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_app.settings import process_environment
from spark_app.spark.jars import ensure_jars
from tests.polling import poll_until
from tests.receivers import dead_port

KEYS: Final = {
    "AWS_ACCESS_KEY_ID": "a-key-of-the-test",
    "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-test",
}


@dataclass(frozen=True)
class Server:
    """An S3 server.

    Attributes:
        folder: The folder of its buckets; an object is a file there.
        url: Its address.
        jars: The folder with the jars of S3.
    """

    folder: Path
    url: str
    jars: Path

    def bucket(self, folder: Path | None = None) -> str:
        """The name of a new bucket, whose objects are in a folder of its own or in the given one."""
        name = f"bucket-{secrets.token_hex(4)}"
        if folder is None:
            (self.folder / name).mkdir()
        else:
            (self.folder / name).symlink_to(folder)
        return name

    def log(self, name: str) -> Path:
        """Where a client may write what it says."""
        return self.folder.parent / f"{name}.log"

    @property
    def properties(self) -> dict[str, str]:
        """The Spark properties of a session that uses it."""
        return {
            "spark.driver.extraClassPath": f"{self.jars}/*",
            "spark.hadoop.fs.s3a.endpoint": self.url,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """A server that keeps everything in a folder, which it creates; it does not outlive the block."""
    log, port = folder / "log", dead_port()
    (folder / "buckets").mkdir(parents=True)
    keys = {"ROOT_ACCESS_KEY_ID": KEYS["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_ACCESS_KEY": KEYS["AWS_SECRET_ACCESS_KEY"]}
    command = ["versitygw", "--port", f"127.0.0.1:{port}", "posix", "--bucketlinks", str(folder / "buckets")]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | keys) as process:
        try:
            poll_until(lambda: _answers(port) or process.poll() is not None, log.read_text)
            assert process.poll() is None, log.read_text()
            yield Server(folder / "buckets", f"http://127.0.0.1:{port}", jars())
        finally:
            process.kill()


@contextmanager
def losing_one_answer(server: Server, part: bytes) -> Iterator[tuple[str, threading.Event]]:
    """The address of a server whose answer to the first successful put with a part in its path gets lost on the way.

    The event tells that it is lost.
    """
    lost, port = threading.Event(), int(server.url.rpartition(":")[2])

    class Relay(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            """Hands on what both say, until one of them ends."""
            asked = bytearray()
            with socket.create_connection(("127.0.0.1", port)) as upstream:
                ends = {self.request: upstream, upstream: self.request}
                while True:
                    for end in select.select([*ends], [], [])[0]:
                        said = end.recv(65536)
                        if end is self.request:
                            asked += said
                        is_put = asked.startswith(b"PUT ") and part in asked.partition(b"\r\n")[0]
                        if not said or (is_put and b" 200 OK" in said[:20] and not lost.is_set()):
                            if said:
                                lost.set()
                            return
                        ends[end].sendall(said)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay) as relay:
        relay.daemon_threads = True
        thread = threading.Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{relay.server_address[1]}", lost
        finally:
            relay.shutdown()
            thread.join()


def jars() -> Path:
    """The folder with the jars of S3, which the first call on a machine fetches."""
    cache = process_environment().get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(cache, "spark-app", "s3")
    folder.mkdir(parents=True, exist_ok=True)
    ensure_jars(note=lambda _: None, name="jars-s3", folder=folder)
    return folder


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
