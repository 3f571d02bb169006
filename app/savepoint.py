"""Goes back to the last good content of some tables when what writes them does not end well."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from app import files, folders
from app.settings import Settings

LOG: Final = logging.getLogger(__name__)


@contextmanager
def savepoint(
    spark: SparkSession,
    settings: Settings,
    key: str,
    *,
    versions: Mapping[str, int],
    put_back: Callable[[str, int], None],
    tell: Callable[[str], None],
) -> Iterator[None]:
    """Puts tables back if anything stops the block; a kill leaves a note for the next try.

    The versions to go back to are noted in a file before anything changes, and the note is kept until the block has
    ended well or everything is put back. So a rerun after a kill goes back to the last good content, not to that of
    the run that was killed, whatever stops it. The note also stays where putting back fails, and after an interruption:
    Java is not interrupted with us, so what it was committing may still appear.

    Args:
        spark: The session.
        settings: Where the warehouse is.
        key: Names what is written: one pipeline and one date.
        versions: Tables and their versions now; those of an older note win.
        put_back: Called with a table and the version whose content it is to have again.
        tell: Told if that fails; what stopped the block is raised all the same.
    """
    note = _note(settings, key)
    noted = files.read_text(spark, note)
    good: Mapping[str, int] = json.loads(noted) if noted else versions
    if not noted:
        files.write_text(spark, note, json.dumps(good))
    try:
        yield
    except (Exception, KeyboardInterrupt) as stop:
        with _told(key, tell):
            for name, version in good.items():
                put_back(name, version)
            if not isinstance(stop, KeyboardInterrupt):
                files.delete_file(spark, note)
        raise
    files.delete_file(spark, note)


def recover(
    spark: SparkSession,
    settings: Settings,
    key: str,
    *,
    put_back: Callable[[str, int], None],
    tell: Callable[[str], None],
) -> None:
    """Puts back what a killed run left, before a rerun begins: it may end before it gets to its savepoint.

    Whoever still works at the key is left alone. So is everything where no lock tells who does: there, only the
    savepoint of the rerun goes back to what was noted.

    Args:
        spark: The session.
        settings: Where the warehouse is.
        key: That of the savepoint, and of the lock that is held around it.
        put_back: As for `savepoint`.
        tell: Told what was done, or that it failed: then the note stays for the savepoint of the rerun.
    """
    note = _note(settings, key)
    here = folders.local(note)
    with _told(key, tell):
        if here is None or not here.exists():
            return
        with folders.if_free(settings, key) as is_free:
            if not is_free or not here.exists():  # or who was at work has ended just now
                return
            good: Mapping[str, int] = json.loads(here.read_text(encoding="utf-8"))
            for name, version in good.items():
                put_back(name, version)
            files.delete_file(spark, note)
            tell(f"a run of {key} did not end: {' and '.join(good)} are as they were before it")


def _note(settings: Settings, key: str) -> str:
    return f"{settings.warehouse_path.rstrip('/')}/_savepoints/{key}.json"


@contextmanager
def _told(key: str, tell: Callable[[str], None]) -> Iterator[None]:
    """A failure to put back is told, and stops nothing."""
    try:
        yield
    except Exception:
        LOG.exception("%s: cannot put back", key)
        tell(f"could not put back the tables of {key}: run the date again, which does so")
