"""A day appears whole or not at all, whatever happens on the way."""

import datetime
import resource
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from app.demo.ledger import Ledger
from app.demo.shop import LOCK, day_folder, write_day
from spark_app.errors import MachineError, UsageError

DATE: Final = datetime.date(2024, 1, 1)


def made(folder: Path, *, seed: int = 1, rows: int = 2_000, kind: str = "json") -> dict[str, Ledger]:
    """A small day."""
    return write_day(folder, date=DATE, rows=rows, seed=seed, formats={"transactions": kind, "customers": kind})


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, hidden ones too, but for the lock."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def hidden(folder: Path) -> list[Path]:
    """What is left of drafts."""
    return [path for path in folder.rglob(".*") if path.name != LOCK]


def test_a_day_replaces_an_earlier_one(tmp_path: Path) -> None:
    """All files of the earlier one go, whatever state they are in."""
    made(tmp_path / "raw", seed=1, kind="csv")
    part = day_folder(tmp_path / "raw", "transactions", DATE) / "part-00000.csv"
    part.write_bytes(part.read_bytes()[:-100])
    made(tmp_path / "raw", seed=2, kind="json")
    made(tmp_path / "fresh", seed=2, kind="json")
    assert contents(tmp_path / "raw") == contents(tmp_path / "fresh")
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("lost", ["customers", "transactions"])
def test_a_lost_source_is_generated_beside_the_other(tmp_path: Path, lost: str) -> None:
    """With the same options only; the source that is there stays untouched, as somebody may be reading it."""
    made(tmp_path)
    before = contents(tmp_path)
    shutil.rmtree(day_folder(tmp_path, lost, DATE))
    formats = {"transactions": "json", "customers": "json"}
    with pytest.raises(UsageError, match="was generated with different options"):
        write_day(tmp_path, date=DATE, rows=2_000, seed=2, formats=formats, replace=False)
    assert contents(tmp_path).items() < before.items()
    files = {path: path.stat().st_ino for path in tmp_path.rglob("part-*")}
    write_day(tmp_path, date=DATE, rows=2_000, seed=1, formats=formats, replace=False)
    assert contents(tmp_path) == before
    assert {path: path.stat().st_ino for path in files} == files


def test_several_processes_take_turns(tmp_path: Path) -> None:
    """Each ends without an error, and each source is whole and of one of them."""
    seeds = (1, 2, 3, 1)
    whole = {seed: tmp_path / "fresh" / str(seed) for seed in seeds}
    for seed, folder in whole.items():
        made(folder, seed=seed)
    with ThreadPoolExecutor(len(seeds)) as threads:
        list(threads.map(lambda seed: made(tmp_path / "raw", seed=seed), seeds * 3))
    for source in ("transactions", "customers"):
        assert contents(tmp_path / "raw" / source) in [contents(folder / source) for folder in whole.values()]
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("reason", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_writer_changes_nothing(tmp_path: Path, reason: type[BaseException]) -> None:
    """The earlier day stays, and no draft is left."""
    made(tmp_path)
    before = contents(tmp_path)

    def interrupt(rows: int) -> None:
        raise reason

    formats = {"transactions": "json", "customers": "json"}
    with pytest.raises(reason):
        write_day(tmp_path, date=DATE, rows=5_000, seed=2, formats=formats, progress=interrupt)
    assert contents(tmp_path) == before
    assert hidden(tmp_path) == []


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    """One line says which folder and why."""
    (tmp_path / "file").touch()
    with pytest.raises(MachineError) as caught:
        made(tmp_path / "file" / "raw")
    assert str(caught.value) == f"cannot create folder {tmp_path / 'file' / 'raw'}: Not a directory"


@pytest.mark.parametrize("kind", ["json", "json.gz", "csv", "parquet"])
def test_a_write_that_is_refused_changes_nothing(tmp_path: Path, kind: str) -> None:
    """One line says why, the earlier day stays, and no draft is left."""
    made(tmp_path, kind=kind)
    before = contents(tmp_path)
    with files_of_at_most(30_000), pytest.raises(MachineError) as caught:
        made(tmp_path, rows=20_000, seed=2, kind=kind)
    assert str(caught.value) == f"cannot write {tmp_path}: File too large"
    assert contents(tmp_path) == before
    assert hidden(tmp_path) == []


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A limit of the operating system on what this process may write, as a quota is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("leftover", [".date=2024-01-01.draft", ".date=2024-01-01.replaced"])
def test_what_a_killed_process_left_is_repaired(tmp_path: Path, leftover: str) -> None:
    """A draft that was never published, or a day that was moved away and not yet replaced."""
    made(tmp_path)
    whole = contents(tmp_path)
    target = day_folder(tmp_path, "transactions", DATE)
    target.rename(target.with_name(leftover))
    made(tmp_path)
    assert contents(tmp_path) == whole
    assert hidden(tmp_path) == []
