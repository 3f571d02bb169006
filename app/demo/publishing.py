"""A folder that appears with all of its files at once, or not at all.

The caller holds a lock, so that one process at a time writes; a killed one leaves hidden folders, which the next
writer of the same target removes.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_app.errors import MachineError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns an error of the file system (disk full, no permission) into one line that names the path.

    Raises:
        MachineError: The file system refused.
    """
    try:
        yield
    except OSError as error:
        raise MachineError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def draft(target: Path) -> Iterator[Path]:
    """An empty hidden folder beside the target, to be filled and published, and removed at the end if it was not."""
    folder, replaced = _draft_of(target), _replaced_of(target)
    for leftover in (folder, replaced):
        shutil.rmtree(leftover, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(target: Path) -> None:
    """Puts the draft of a target in its place and removes what was there."""
    replaced = _replaced_of(target)
    if target.exists():
        target.rename(replaced)
    _draft_of(target).rename(target)
    shutil.rmtree(replaced, ignore_errors=True)


def _draft_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.draft")


def _replaced_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.replaced")
