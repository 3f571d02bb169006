"""Local folders: made or explained, and kept for one at a time."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import MachineError
from app.settings import Settings


def made(folder: Path) -> Path:
    """A folder that is there.

    Raises:
        MachineError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(f"cannot make folder {folder}: {error.strerror}") from error
    return folder


@contextmanager
def alone(settings: Settings, key: str, *, note: Callable[[str], None]) -> Iterator[None]:
    """Keeps a second holder of a key waiting; the key of a killed process is free at once.

    Only where the warehouse is a local folder. Elsewhere Delta's own conflict check is what keeps two runs right.

    Args:
        settings: Where the warehouse is.
        key: Names what is worked at: one pipeline and one date.
        note: Told when there is somebody to wait for.
    """
    if ":/" in settings.warehouse_path:
        yield
        return
    locks = made(Path(settings.warehouse_path) / "_locks")
    with (locks / f"{key}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"another run of {key} is at work: waiting for it to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
