"""Goes back to the last good content of some tables when what was written turns out to be bad."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from app import files
from app.errors import QualityGateError
from app.settings import Settings


@contextmanager
def savepoint(
    spark: SparkSession,
    settings: Settings,
    key: str,
    *,
    versions: Mapping[str, int],
    put_back: Callable[[str, int], None],
) -> Iterator[None]:
    """Puts tables back if a quality gate stops the block; any other end leaves a note for the next try.

    The versions to go back to are noted in a file before anything changes, and the note is kept until the block has
    ended well or everything is put back. So a rerun after a kill goes back to the last good content, not to that of
    the run that was killed.

    Args:
        spark: The session.
        settings: Where the warehouse is.
        key: Names what is written: one pipeline and one date.
        versions: Tables and their versions now; those of an older note win.
        put_back: Called with a table and the version whose content it is to have again.

    Raises:
        QualityGateError: As it left the block, once the tables are put back.
    """
    note = f"{settings.warehouse_path.rstrip('/')}/_savepoints/{key}.json"
    noted = files.read_text(spark, note)
    good: Mapping[str, int] = json.loads(noted) if noted else versions
    if not noted:
        files.write_text(spark, note, json.dumps(good))
    try:
        yield
    except QualityGateError:
        for name, version in good.items():
            put_back(name, version)
        files.delete_file(spark, note)
        raise
    files.delete_file(spark, note)
