"""Rows as lines of text, formatted column by column in Arrow; text-only faults are added afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DAY_US: Final = 86_400_000_000


@dataclass(frozen=True)
class Misfit:
    """A value that is not of its column's type; only text formats can hold one."""

    row: int
    column: str
    text: str


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of one source, and what is wrong with their text.

    Attributes:
        rows: The rows, typed.
        misfits: Values to be written as another text.
        malformed: Positions of rows to be written as lines that are no row, in rising order.
    """

    rows: pa.RecordBatch
    misfits: Sequence[Misfit] = ()
    malformed: Sequence[int] = ()


def json_lines(chunk: Chunk) -> pa.StringArray:
    """One JSON object a row, keys in the order of the schema, null where there is no value."""
    pieces: list[Any] = []
    for position, column in enumerate(chunk.rows.schema.names):
        pieces.append(("," if position else "{") + f'"{column}":')
        texts = _texts(chunk.rows.column(column), quote='"')
        pieces.append(_with_misfits(texts, column, chunk.misfits, '"{}"'.format).fill_null("null"))
    return _with_malformed(_joined(*pieces, "}\n"), chunk.malformed, malformed_json)


def csv_lines(chunk: Chunk) -> pa.StringArray:
    """One line a row, nothing where there is no value."""
    pieces: list[Any] = []
    for position, column in enumerate(chunk.rows.schema.names):
        pieces += [","] if position else []
        texts = _texts(chunk.rows.column(column), quote="")
        pieces.append(_with_misfits(texts, column, chunk.misfits, _csv_value).fill_null(""))
    return _with_malformed(_joined(*pieces, "\n"), chunk.malformed, malformed_csv)


def malformed_json(line: str, variant: int) -> str:
    """A line that is no JSON object: one cut off, a bare word, an array."""
    return (line[: len(line) // 2], "oops", '["' + line[2:12] + '", 1]')[variant % 3] + "\n"


def malformed_csv(line: str, variant: int) -> str:
    """A line that has other than the right number of fields: too many, too few, one word."""
    return (line.rstrip("\n") + ",surplus,fields", ",".join(line.split(",")[:-3]), "oops")[variant % 3] + "\n"


def _texts(values: pa.Array, *, quote: str) -> pa.StringArray:
    """The values as text: numbers bare, all others in quotes."""
    if pa.types.is_dictionary(values.type):
        return _texts(values.dictionary, quote=quote).take(values.indices)
    if pa.types.is_string(values.type):
        return _joined(quote, values, quote) if quote else values
    if pa.types.is_timestamp(values.type):
        return _instants(values, quote=quote)
    return values.cast(pa.string())


def _instants(values: pa.TimestampArray, *, quote: str) -> pa.StringArray:
    """Like 2024-01-01T08:15:30.123456Z; few days occur, so each is written once and looked up."""
    if values.null_count == len(values):
        return pa.nulls(len(values), pa.string())
    micros = values.cast(pa.int64())
    days = pc.divide(micros, _DAY_US)
    first, last = (bound.as_py() for bound in pc.min_max(days).values())
    dates = pa.array(range(first, last + 1), pa.int32()).cast(pa.date32()).cast(pa.string())
    times = pc.subtract(micros, pc.multiply(days, _DAY_US)).cast(pa.time64("us")).cast(pa.string())
    return _joined(quote, dates.take(pc.subtract(days, first)), "T", times, "Z" + quote)


def _joined(*pieces: Any) -> pa.StringArray:
    return pc.binary_join_element_wise(*pieces, "")


def _csv_value(text: str) -> str:
    return f'"{text}"' if "," in text else text


def _with_misfits(
    texts: pa.StringArray, column: str, misfits: Sequence[Misfit], written: Callable[[str], str]
) -> pa.StringArray:
    here = sorted((misfit.row, written(misfit.text)) for misfit in misfits if misfit.column == column)
    return _replaced(texts, [row for row, _ in here], [text for _, text in here])


def _with_malformed(lines: pa.StringArray, rows: Sequence[int], spoilt: Callable[[str, int], str]) -> pa.StringArray:
    return _replaced(lines, rows, [spoilt(lines[row].as_py(), variant) for variant, row in enumerate(rows)])


def _replaced(texts: pa.StringArray, rows: Sequence[int], replacements: Sequence[str]) -> pa.StringArray:
    """The texts with those of some rows, in rising order, replaced."""
    if not rows:
        return texts
    mask = np.zeros(len(texts), dtype=np.bool_)
    mask[rows] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(replacements, pa.string()))
