"""Delta's log on a real S3 server: of two drivers that commit a version at once one wins, and the other is told.

Needs versitygw and javac on PATH.
"""

import os
import runpy
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import pytest

from tests import s3

ROOT: Final = Path(__file__).resolve().parents[2]
RACE: Final = Path(__file__).with_name("log_store_race.py")
OWN: Final = "sparkapp.S3ConditionalPutLogStore"
VERSIONS: Final = 30


class Driver:
    """A process that commits versions of tables."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Its JVM may not be up yet: it says when it is."""
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin: IO[str] = process.stdin
        self._stdout: IO[str] = process.stdout

    def tell(self, store: str, url: str, table: str, version: int) -> None:
        """Lets it commit a version with a log store, at the address of a server."""
        self._stdin.write(f"{store} {url} {table} {version}\n")
        self._stdin.flush()

    def answer(self) -> str:
        """What it says of that, or that it is ready."""
        return self._stdout.readline().strip()


@contextmanager
def driver(server: s3.Server) -> Iterator[Driver]:
    """A driver without a log store as yet."""
    command = [sys.executable, str(RACE), *(f"{key}={value}" for key, value in server.properties.items())]
    with (
        server.log(f"driver-{secrets.token_hex(2)}").open("wb") as said,
        subprocess.Popen(
            command, text=True, env=os.environ | s3.KEYS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
        ) as process,
    ):
        try:
            yield Driver(process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def drivers(server: s3.Server) -> Iterator[list[Driver]]:
    """Two drivers, for tables of all tests: each start of Java takes longer than a race."""
    with driver(server) as one, driver(server) as two:
        assert [one.answer(), two.answer()] == ["ready", "ready"]
        yield [one, two]


def wins(server: s3.Server, drivers: Sequence[Driver], store: str) -> int:
    """How many commits of a table the drivers won together."""
    table = f"s3a://{server.bucket()}/table"
    won = 0
    for version in range(VERSIONS):
        for each in drivers:
            each.tell(store, server.url, table, version)
        answers = [each.answer() for each in drivers]
        assert {*answers} <= {"won", "lost"}
        won += answers.count("won")
    return won


def test_each_version_of_a_table_has_one_writer(server: s3.Server, drivers: list[Driver]) -> None:
    """Two drivers at the same instants: each version is won once. With Delta's own store both win, and one is lost."""
    assert wins(server, drivers, OWN) == VERSIONS
    assert wins(server, drivers, "io.delta.storage.S3SingleDriverLogStore") > VERSIONS


def test_a_commit_whose_answer_was_lost_is_made_once(server: s3.Server, drivers: list[Driver]) -> None:
    """The put is sent again and refused, since the object is there: its content tells that it is the driver's own."""
    table = f"s3a://{server.bucket()}/table"
    with s3.losing_one_answer(server, b"_delta_log") as (url, is_lost):
        drivers[0].tell(OWN, url, table, 0)
        assert drivers[0].answer() == "won"
        assert is_lost.is_set()


def test_jars_are_what_their_sources_compile_to() -> None:
    """Also by another javac; `scripts/build_jars.py` writes both the jars and their digests in the lists."""
    build = runpy.run_path(str(ROOT / "scripts" / "build_jars.py"))
    for jar in build["JARS"]:
        lines = jar.sums.read_text(encoding="utf-8").splitlines()
        assert jar.file.read_bytes() == build["compiled"](jar.source)
        assert build["listed"](lines, jar).splitlines() == lines
