"""Delta's log on a real S3 server: of two drivers that commit a version at once one wins, and the other is told.

Needs versitygw and javac on PATH.
"""

import os
import runpy
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final

from tests import s3

ROOT: Final = Path(__file__).resolve().parents[2]
RACE: Final = Path(__file__).with_name("log_store_race.py")
OWN: Final = "sparkapp.S3ConditionalPutLogStore"
VERSIONS: Final = 30


class Driver:
    """A process that commits versions of a table."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Waits until its JVM is up."""
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin: IO[str] = process.stdin
        self._stdout: IO[str] = process.stdout

    def tell(self, version: int) -> None:
        """Lets it commit a version."""
        self._stdin.write(f"{version}\n")
        self._stdin.flush()

    def answer(self) -> str:
        """What it says of that, or that it is ready."""
        return self._stdout.readline().strip()


@contextmanager
def driver(server: s3.Server, store: str, table: str, **changes: str) -> Iterator[Driver]:
    """A driver with a log store."""
    properties = [f"{key}={value}" for key, value in (server.properties | changes).items()]
    command = [sys.executable, str(RACE), store, table, *properties]
    with (
        server.log(f"{store}-{secrets.token_hex(2)}").open("wb") as said,
        subprocess.Popen(
            command, text=True, env=os.environ | s3.KEYS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
        ) as process,
    ):
        try:
            yield Driver(process)
        finally:
            process.kill()


def race(server: s3.Server, store: str) -> tuple[int, str]:
    """How many commits two drivers won together, and the table."""
    table = f"s3a://{server.bucket()}/table"
    with ExitStack() as stack:
        drivers = [stack.enter_context(driver(server, store, table)) for _ in range(2)]
        assert [each.answer() for each in drivers] == ["ready", "ready"]
        won = 0
        for version in range(VERSIONS):
            for each in drivers:
                each.tell(version)
            answers = [each.answer() for each in drivers]
            assert {*answers} <= {"won", "lost"}
            won += answers.count("won")
    return won, table


def test_each_version_of_a_table_has_one_writer(server: s3.Server) -> None:
    """Two drivers at the same instants: each version is won once. With Delta's own store both win, and one is lost."""
    assert race(server, OWN)[0] == VERSIONS
    assert race(server, "io.delta.storage.S3SingleDriverLogStore")[0] > VERSIONS


def test_a_commit_whose_answer_was_lost_is_made_once(server: s3.Server) -> None:
    """The put is sent again and refused, since the object is there: its content tells that it is the driver's own."""
    table = f"s3a://{server.bucket()}/table"
    with s3.losing_one_answer(server, b"_delta_log") as (url, is_lost):
        with driver(server, OWN, table, **{"spark.hadoop.fs.s3a.endpoint": url}) as writer:
            assert writer.answer() == "ready"
            writer.tell(0)
            assert writer.answer() == "won"
        assert is_lost.is_set()


def test_the_jar_is_what_its_source_compiles_to() -> None:
    """Also by another javac; `scripts/build_s3_log_store.py` writes both the jar and its digest in the list."""
    build = runpy.run_path(str(ROOT / "scripts" / "build_s3_log_store.py"))
    jar, lines = build["compiled"](), build["SUMS"].read_text(encoding="utf-8").splitlines()
    assert build["JAR"].read_bytes() == jar
    assert build["listed"](lines, jar).splitlines() == lines
