"""Files in a storage that answers slowly: a server that speaks WebHDFS, which each Spark has a client for."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import rmtree
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from pyspark.sql import functions as F

from truth.programs.common import digest, done, main, place, session

ROOT: Final = Path("storage")
API: Final = "/webhdfs/v1"
PIECE: Final = 64 * 1024
DELAY: Final = 0.05
"""Seconds that a slow storage takes for each piece of a file."""


def read(
    *, planted: bool, form: str, rows: int = 250_000, kind: str = "parquet", delay: float = DELAY, files: int = 16
) -> None:
    """Figures of the sales in some files, which a storage sends at once or slowly."""
    spark = session("figures", sql_files_maxPartitionBytes="8m", sql_files_openCostInBytes="4m")
    notes = [F.sha2(F.concat("id", F.lit(each)), 256).alias(f"note{each}") for each in range(3)]
    written = spark.range(0, rows, 1, files).select("id", (F.col("id") % 97).cast("double").alias("price"), *notes)
    with _storage(delay if planted else 0) as address:
        written.write.format(kind).save((ROOT.absolute() / "sales").as_uri())
        sales = spark.read.schema(written.schema).format(kind).load(f"{address}/sales")
        sales.createOrReplaceTempView("sales")
        with place(spark):
            if form == "sql":
                spark.sql("SELECT sum(price), max(note0), max(note1), max(note2) FROM sales").collect()
            elif form == "rdd":
                # As a program in Java or Scala counts lines: no Python function is in between.
                assert spark.sparkContext._jsc is not None
                spark.sparkContext._jsc.textFile(f"{address}/sales", files).count()
            else:
                done(sales.select("price", "note0", "note1", digest("note2", 1)))
    spark.stop()


def write(*, planted: bool, form: str, rows: int = 150_000, kind: str = "parquet") -> None:
    """Sales that are written into a storage that takes them at once or slowly."""
    spark = session("sales")
    sales = spark.range(0, rows, 1, 8).select("id", F.sha2(F.hex("id"), 512).alias("note"), digest("id", 1))
    with _storage(DELAY if planted else 0) as address, place(spark):
        if form == "sql":
            sales.createOrReplaceTempView("made")
            spark.sql(f"CREATE TABLE sales USING {kind} LOCATION '{address}/sales' AS SELECT * FROM made")
        else:
            sales.write.format(kind).save(f"{address}/sales")
    spark.stop()


@contextmanager
def _storage(delay: float) -> Iterator[str]:
    """A server with the files of a folder, and its address."""
    ROOT.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Slow", (Storage,), {"delay": delay}))
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"webhdfs://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        rmtree(ROOT)


class Storage(BaseHTTPRequestHandler):
    """Answers what Hadoop's client asks of WebHDFS, with the files of a folder."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    delay = 0.0

    def log_message(self, *_: Any) -> None:  # noqa: D102
        return

    def do_GET(self) -> None:  # noqa: D102
        asks = {"GETFILESTATUS": self._status, "LISTSTATUS": self._list, "GETFILEBLOCKLOCATIONS": self._locate}
        self._answer(asks | {"OPEN": self._open})

    def do_PUT(self) -> None:  # noqa: D102
        self._answer({"CREATE": self._create, "MKDIRS": self._make, "RENAME": self._rename, "SETPERMISSION": self._ok})

    def do_DELETE(self) -> None:  # noqa: D102
        self._answer({"DELETE": self._delete})

    def _answer(self, operations: dict[str, Any]) -> None:
        address = urlsplit(self.path)
        self.asked = {name: values[0] for name, values in parse_qs(address.query).items()}
        self.file = self._file(unquote(address.path).removeprefix(API))
        operation = operations.get(self.asked["op"])
        if operation is None:
            self._refuse(400, "UnsupportedOperationException")
        elif operation in (self._open, self._create) and "there" not in self.asked:
            self._send(307, Location=f"http://{self.headers['Host']}{self.path}&there=true")
        elif operation not in (self._create, self._make, self._delete) and not self.file.exists():
            self._refuse(404, "FileNotFoundException")
        else:
            operation()

    def _file(self, path: str) -> Path:
        return ROOT / path.lstrip("/")

    def _status(self) -> None:
        self._send(200, {"FileStatus": self._status_of(self.file, "")})

    def _list(self) -> None:
        names = sorted(self.file.iterdir()) if self.file.is_dir() else [self.file]
        found = [self._status_of(each, each.name) for each in names]
        self._send(200, {"FileStatuses": {"FileStatus": found}})

    def _status_of(self, file: Path, name: str) -> dict[str, Any]:
        stat, is_folder = file.stat(), file.is_dir()
        kind = {"type": "DIRECTORY", "length": 0} if is_folder else {"type": "FILE", "length": stat.st_size}
        times = {"modificationTime": int(stat.st_mtime * 1000), "accessTime": 0}
        owner = {"owner": "somebody", "group": "somebody", "permission": "755"}
        return kind | times | owner | {"pathSuffix": name, "blockSize": 128 << 20, "replication": 1}

    def _locate(self) -> None:
        block = {"offset": 0, "length": self.file.stat().st_size, "corrupt": False, "storageTypes": ["DISK"]}
        here = {"hosts": ["localhost"], "names": ["localhost:1"], "topologyPaths": ["/rack/localhost:1"]}
        self._send(200, {"BlockLocations": {"BlockLocation": [block | here | {"cachedHosts": []}]}})

    def _open(self) -> None:
        offset = int(self.asked.get("offset", 0))
        length = min(int(self.asked.get("length", 1 << 60)), self.file.stat().st_size - offset)
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        with self.file.open("rb") as file:
            file.seek(offset)
            while length > 0:
                time.sleep(self.delay)
                piece = file.read(min(PIECE, length))
                try:
                    self.wfile.write(piece)
                except OSError:  # the client has read enough
                    self.close_connection = True
                    return
                length -= len(piece)

    def _create(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("wb") as file:
            while size := int(self.rfile.readline(), 16):
                while size > 0:
                    piece = self.rfile.read(min(PIECE, size))
                    file.write(piece)
                    size -= len(piece)
                    time.sleep(self.delay * len(piece) / PIECE)
                self.rfile.readline()
            self.rfile.readline()
        self._send(201)

    def _make(self) -> None:
        self.file.mkdir(parents=True, exist_ok=True)
        self._send(200, {"boolean": True})

    def _rename(self) -> None:
        target = self._file(self.asked["destination"])
        self.file.rename(target / self.file.name if target.is_dir() else target)
        self._send(200, {"boolean": True})

    def _delete(self) -> None:
        was_there = self.file.exists()
        if self.file.is_dir():
            rmtree(self.file)
        else:
            self.file.unlink(missing_ok=True)
        self._send(200, {"boolean": was_there})

    def _ok(self) -> None:
        self._send(200)

    def _refuse(self, code: int, exception: str) -> None:
        named = {"exception": exception, "javaClassName": f"java.io.{exception}", "message": self.path}
        self._send(code, {"RemoteException": named})

    def _send(self, code: int, content: dict[str, Any] | None = None, **headers: str) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(code)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    main(read, write)
