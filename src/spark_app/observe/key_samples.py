"""A sample of the values of some columns of Parquet files and Delta tables on this machine."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from spark_app.errors import MachineError
from spark_app.warehouse import freshness

if TYPE_CHECKING:
    from pyarrow import Table, dataset

MAX_ROWS: Final = 200_000
MAX_FILES: Final = 20
MAX_GROUPS: Final = 40
"""Row groups that are read, evenly chosen over the files: Spark writes one of up to 128 MB for most files."""
_DELTA_LOG: Final = "_delta_log"
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"


class NoSampleError(ValueError):
    """There is nothing to sample; the message says why."""


@dataclass(frozen=True, slots=True)
class Sample:
    """How often values were seen.

    Attributes:
        value: The most frequent combination of values; None is NULL.
        count: Its rows.
        rows, values: All sampled rows, and how many different combinations they have.
        is_whole: Whether the sample has all rows.
    """

    value: tuple[Any, ...]
    count: int
    rows: int
    values: int
    is_whole: bool


def require() -> None:
    """Checks that pyarrow is installed.

    Raises:
        MachineError: It is not.
    """
    if find_spec("pyarrow") is None:
        raise MachineError(
            "--name-hot-keys reads Parquet files with pyarrow, which is not installed here: "
            "install pyarrow, or spark-app[ml], which has it"
        )


def sample(paths: Sequence[Path], columns: Sequence[str], never_null: Sequence[str] = ()) -> Sample:
    """Counts the values of some columns in a bounded sample of Parquet files.

    Args:
        paths: Folders and files; folders may have partitions (`day=2026-01-01/`).
        columns: The columns.
        never_null: Those of them whose rows without a value do not count.

    Raises:
        NoSampleError: There are no such files or columns, or they cannot be read.
    """
    import pyarrow as pa

    try:
        pieces, is_whole = _pieces(paths)
        return _counted(_read(pieces, columns), columns, never_null, is_whole=is_whole)
    except (OSError, pa.ArrowException) as error:
        raise NoSampleError(f"its files cannot be read ({type(error).__name__})") from error


def _pieces(paths: Sequence[Path]) -> "tuple[list[dataset.ParquetFileFragment], bool]":
    """Some row groups of some of the files, and whether these are all."""
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None or not paths:
        raise NoSampleError("its files are gone")
    files = list(chain.from_iterable(_dataset(path).get_fragments() for path in paths))
    chosen = _even(files, MAX_FILES)
    groups = list(chain.from_iterable(file.split_by_row_group() for file in chosen))
    return _even(groups, MAX_GROUPS), len(files) <= MAX_FILES and len(groups) <= MAX_GROUPS


def _dataset(path: Path) -> "dataset.Dataset":
    """The files of a folder; of a Delta table, those of its newest version."""
    from pyarrow import dataset

    table = next((folder for folder in (path, *path.parents) if (folder / _DELTA_LOG).is_dir()), None)
    if table is None:
        return dataset.dataset(str(path), format="parquet")
    names = freshness.whole_files(table)
    if names is None:
        raise NoSampleError("the log of its Delta table does not say which rows it has now")
    return dataset.dataset([str(table / unquote(name)) for name in names], format="parquet")


def _even(items: list[Any], most: int) -> list[Any]:
    """So many of some items at most, at even distances."""
    if len(items) <= most:
        return items
    return [items[number * len(items) // most] for number in range(most)]


def _read(pieces: "Sequence[dataset.ParquetFileFragment]", columns: Sequence[str]) -> "tuple[Table, int]":
    """Rows at random positions, as many of each row group as its share of all; and how many rows there are."""
    import pyarrow as pa

    numbers = [sum(group.num_rows for group in piece.row_groups) for piece in pieces]
    total, tables, choice = sum(numbers), [], random.Random(0)  # the same sample of the same files
    for piece, rows in zip(pieces, numbers, strict=True):
        names = {*piece.physical_schema.names, *(_partition(piece))}
        if missing := next((column for column in columns if column not in names), None):
            raise NoSampleError(f"its files have no column {missing}")
        kept = rows if total <= MAX_ROWS else rows * MAX_ROWS // total
        tables.append(_columns(piece, columns).take(pa.array(sorted(choice.sample(range(rows), kept)), pa.int64())))
    if not tables:
        raise NoSampleError("its folder has no Parquet files")
    return pa.concat_tables(tables, promote_options="permissive"), total


def _partition(piece: "dataset.ParquetFileFragment") -> dict[str, str | None]:
    """The columns of a file that its path has, as Spark writes them: `/day=2026-01-01/`."""
    parts = (part.partition("=") for part in Path(piece.path).parent.parts)
    return {unquote(name): None if value == _NO_VALUE else unquote(value) for name, equals, value in parts if equals}


def _columns(piece: "dataset.ParquetFileFragment", columns: Sequence[str]) -> "Table":
    """The columns of a row group; those that its path has are repeated."""
    import pyarrow as pa

    known = _partition(piece)
    table = piece.to_table(columns=[column for column in columns if column not in known])
    of_path = {
        name: pa.repeat(pa.scalar(known[name], pa.string()), table.num_rows) for name in columns if name in known
    }
    arrays = [of_path[name] if name in of_path else table.column(name) for name in columns]
    return pa.table(arrays, names=list(columns))


def _counted(read: "tuple[Table, int]", columns: Sequence[str], never_null: Sequence[str], *, is_whole: bool) -> Sample:
    table, total = read
    is_whole = is_whole and table.num_rows == total
    counted = _without_nulls(table, never_null)
    groups = counted.group_by(list(columns)).aggregate([([], "count_all")]).sort_by([("count_all", "descending")])
    if not groups.num_rows:
        raise NoSampleError("no sampled row has a value of the key")
    first = groups.slice(0, 1).to_pylist()[0]
    value = tuple(first[column] for column in columns)
    return Sample(value, first["count_all"], counted.num_rows, groups.num_rows, is_whole)


def _without_nulls(table: "Table", never_null: Sequence[str]) -> "Table":
    for column in never_null:
        table = table.filter(table.column(column).is_valid())
    return table
