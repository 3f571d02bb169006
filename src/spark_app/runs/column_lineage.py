"""From which columns each of a declared table is computed: `columns.json` in the folder of the run that wrote it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from spark_app.errors import InputError
from spark_app.local_files import write_atomic
from spark_app.runs import run_record

COLUMNS: Final = "columns.json"


class Origin(NamedTuple):
    """A column of an input."""

    input: str
    column: str


class TableColumns(msgspec.Struct, frozen=True):
    """The columns of a table.

    Attributes:
        table: Its name.
        path: Where it is.
        inputs: Where the inputs are, by name; those that are not said to be anywhere are None.
        columns: By column, those that its values are computed of: none for a literal or a count of rows. A column of
            which that is not known is missing.
    """

    table: str
    path: str
    inputs: Mapping[str, str | None]
    columns: Mapping[str, Sequence[Origin]]


def add(folder: Path, columns: TableColumns) -> None:
    """Adds the columns of a table to those in the folder of a run.

    Raises:
        OSError: They cannot be written.
        InputError: Those of before cannot be read.
    """
    kept = [each for each in read(folder) if each.table != columns.table]
    content = msgspec.json.format(msgspec.json.encode([*kept, columns]), indent=2)
    write_atomic(folder / COLUMNS, content + b"\n")


def of_application(runs: Path, application: str) -> list[TableColumns]:
    """The columns of the tables that the runs of an application wrote, the newest run last; damaged files are left out.

    Args:
        runs: The folder of all runs.
        application: The id of the application.
    """
    found = list[TableColumns]()
    for file in sorted(runs.glob(f"*/{COLUMNS}")):
        with suppress(InputError):
            if run_record.read(file.parent).application_id == application:
                found += read(file.parent)
    return found


def read(folder: Path) -> list[TableColumns]:
    """The columns of the tables that a run wrote; none of a run of before, or that declares no tables.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        return msgspec.json.decode((folder / COLUMNS).read_bytes(), type=list[TableColumns])
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot read {folder / COLUMNS}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"{folder / COLUMNS} does not list the columns of tables: {error}") from error
