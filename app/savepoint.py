"""Goes back to the last good content of some tables when what writes them does not end well."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from app import files
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
    note = f"{settings.warehouse_path.rstrip('/')}/_savepoints/{key}.json"
    noted = files.read_text(spark, note)
    good: Mapping[str, int] = json.loads(noted) if noted else versions
    if not noted:
        files.write_text(spark, note, json.dumps(good))
    try:
        yield
    except (Exception, KeyboardInterrupt) as stop:
        try:
            for name, version in good.items():
                put_back(name, version)
            if not isinstance(stop, KeyboardInterrupt):
                files.delete_file(spark, note)
        except Exception:
            LOG.exception("%s: cannot put back %s", key, ", ".join(good))
            tell(f"could not put back {' and '.join(good)} of {key}: run the date again, which does so")
        raise
    files.delete_file(spark, note)
