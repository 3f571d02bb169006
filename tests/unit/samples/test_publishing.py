"""A day appears whole or not at all, whatever happens on the way."""

import datetime
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from app.errors import MachineError, UsageError
from app.samples.ledger import Ledger, read_ledger
from app.samples.publishing import draft, publish
from app.samples.shop import day_folder, write_day

DATE: Final = datetime.date(2024, 1, 1)
ROOT: Final = Path(__file__).resolve().parents[3]
HELD_DRAFT: Final = """
import sys
from pathlib import Path
from app.samples.publishing import draft, publish
with draft(Path(sys.argv[1])) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def made(folder: Path, *, seed: int = 1, rows: int = 2_000, kind: str = "json") -> dict[str, Ledger]:
    """A small day."""
    return write_day(folder, date=DATE, rows=rows, seed=seed, formats={"transactions": kind, "customers": kind})


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, hidden ones too."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def hidden(folder: Path) -> list[Path]:
    """What is left of drafts."""
    return list(folder.rglob(".*"))


def test_another_day_of_the_same_date_takes_its_place(tmp_path: Path) -> None:
    """A new making replaces all files of the old one and leaves nothing behind."""
    made(tmp_path / "raw", seed=1, kind="csv")
    made(tmp_path / "raw", seed=2, kind="json")
    made(tmp_path / "fresh", seed=2, kind="json")
    assert contents(tmp_path / "raw") == contents(tmp_path / "fresh")
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("lost", ["customers", "transactions"])
def test_a_source_that_is_lost_is_made_beside_the_other(tmp_path: Path, lost: str) -> None:
    """What is there is told from another making by all that its rows were counted to, and stays."""
    made(tmp_path)
    before = contents(tmp_path)
    shutil.rmtree(day_folder(tmp_path, lost, DATE))
    formats = {"transactions": "json", "customers": "json"}
    with pytest.raises(UsageError, match="is of another making"):
        write_day(tmp_path, date=DATE, rows=2_000, seed=2, formats=formats, replace=False)
    assert contents(tmp_path).items() < before.items()
    write_day(tmp_path, date=DATE, rows=2_000, seed=1, formats=formats, replace=False)
    assert contents(tmp_path) == before


def test_the_same_day_again_stays_untouched(tmp_path: Path) -> None:
    """Whoever reads the files does not lose them to a second making of the same."""
    made(tmp_path)
    before = {path: path.stat().st_ino for path in tmp_path.rglob("*")}
    made(tmp_path)
    assert {path: path.stat().st_ino for path in tmp_path.rglob("*")} == before


def test_a_damaged_day_is_mended_by_the_same_day_again(tmp_path: Path) -> None:
    """The ledger alone is not believed: files that differ are replaced."""
    made(tmp_path)
    whole = contents(tmp_path)
    part = day_folder(tmp_path, "transactions", DATE) / "part-00000.json"
    part.write_bytes(part.read_bytes()[:-100])
    made(tmp_path)
    assert contents(tmp_path) == whole


@pytest.mark.parametrize("seeds", [(1, 1, 1, 1), (1, 2, 3, 4)], ids=["same", "different"])
def test_several_at_once_end_well(tmp_path: Path, seeds: tuple[int, ...]) -> None:
    """Each ends without an error, and each source is whole and of one of them."""
    whole = {seed: tmp_path / "fresh" / str(seed) for seed in seeds}
    for seed, folder in whole.items():
        made(folder, seed=seed)
    with ThreadPoolExecutor(len(seeds)) as threads:
        for _ in range(5):
            list(threads.map(lambda seed: made(tmp_path / "raw", seed=seed), seeds))
    for source in ("transactions", "customers"):
        assert contents(tmp_path / "raw" / source) in [contents(folder / source) for folder in whole.values()]
    assert hidden(tmp_path) == []


def test_publishing_is_safe_at_every_moment(tmp_path: Path) -> None:
    """Many that replace each other's folder at once all end well, and what remains is one of theirs."""
    target = tmp_path / "day"

    def replace(number: int) -> None:
        with draft(target) as folder:
            (folder / "part").write_text(str(number))
            publish(folder, target)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(replace, range(800)))
    assert int((target / "part").read_text()) < 800
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("reason", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_making_changes_nothing(tmp_path: Path, reason: type[BaseException]) -> None:
    """What was there is still there, and no draft is left."""
    made(tmp_path)
    before = contents(tmp_path)

    def interrupt(rows: int) -> None:
        raise reason

    formats = {"transactions": "json", "customers": "json"}
    with pytest.raises(reason):
        write_day(tmp_path, date=DATE, rows=5_000, seed=2, formats=formats, progress=interrupt)
    assert contents(tmp_path) == before
    assert hidden(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """One line says which folder and why."""
    (tmp_path / "file").touch()
    with pytest.raises(MachineError) as caught:
        made(tmp_path / "file" / "raw")
    assert str(caught.value) == f"cannot write {tmp_path / 'file' / 'raw'}: Not a directory"


@pytest.mark.parametrize("kind", ["json", "json.gz", "csv", "parquet"])
def test_a_write_that_is_refused_changes_nothing(tmp_path: Path, kind: str) -> None:
    """When the system takes no more bytes, one line says so, the old day stays, and no draft is left."""
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


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """The next making of the date removes drafts without an owner, and only these."""
    target = day_folder(tmp_path, "transactions", DATE)
    with (
        subprocess.Popen(
            [sys.executable, "-c", HELD_DRAFT, str(target)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process,
        draft(target) as living,
    ):
        assert process.stdout is not None
        left = Path(process.stdout.readline().decode().strip())
        made(tmp_path)
        assert left.is_dir()
        process.send_signal(signal.SIGKILL)
        process.wait()
        made(tmp_path)
        assert not left.exists()
        assert living.is_dir()
    assert read_ledger(target).rows == 2_000
