"""Columns of Arrow from numbers, and their rows as files of JSON Lines, CSV or Parquet: same rows, same bytes."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.demo.draws import Codes, Ints, Mask

MONEY: Final = pa.decimal128(12, 2)
INSTANT: Final = pa.timestamp("us", tz="UTC")

MINUTE_US: Final = 60_000_000
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US

CHUNK_ROWS: Final = 50_000
FILE_ROWS: Final = 1_000_000


def midnight(date: datetime.date) -> int:
    """The start of a day in UTC, in microseconds since 1970."""
    return (date - datetime.date(1970, 1, 1)).days * DAY_US


def identifiers(prefix: str, numbers: Ints, *, width: int = 7, null: Mask | None = None) -> pa.StringArray:
    """Like `c-0000001`: a prefix and a number with leading zeros; longer numbers are not cut."""
    digits = pc.utf8_lpad(pa.array(numbers, mask=null).cast(pa.string()), width, "0")
    return pc.binary_join_element_wise(prefix, digits, "")


def choice(values: Sequence[str], codes: Codes, *, null: Mask | None = None) -> pa.DictionaryArray:
    """For each code the value at that position."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8(), mask=null), pa.array(values))


def instants(micros: Ints, *, null: Mask | None = None) -> pa.TimestampArray:
    """Instants in UTC from microseconds since 1970."""
    return pa.array(micros, pa.int64(), mask=null).cast(INSTANT)


def money(cents: Ints, *, null: Mask | None = None) -> pa.Decimal128Array:
    """Amounts with two decimals, exact: the cents are the decimal's digits."""
    digits = np.empty((len(cents), 2), dtype=np.int64)
    digits[:, 0], digits[:, 1] = cents, cents >> 63
    known = None if null is None else pa.array(~null).buffers()[1]
    return pa.Decimal128Array.from_buffers(MONEY, len(cents), [known, pa.py_buffer(digits)])


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of one source, and what is wrong with their text.

    Attributes:
        rows: The rows, typed.
        wrong: Texts that are not of the type of their column, and the rows that have them.
        malformed: The rows to be written as lines that are no row.
    """

    rows: pa.RecordBatch
    wrong: Sequence[tuple[str, str, Mask]]
    malformed: Mask


def line_numbers(lines: int) -> Iterator[Ints]:
    """The numbers of all lines, in the parts that are generated one at a time."""
    return (np.arange(start, min(start + CHUNK_ROWS, lines)) for start in range(0, lines, CHUNK_ROWS))


def write_files(folder: Path, chunks: Iterator[Chunk], file_format: str, written: Callable[[int], object]) -> int:
    """Writes `part-00000`, `part-00001`, ... of about 1,000,000 rows each; one chunk is in memory at a time.

    Args:
        folder: Where the files go.
        chunks: The rows.
        file_format: `json`, `csv` or `parquet`.
        written: Called with the number of rows of each chunk, once it is written.

    Returns:
        The number of rows.
    """
    rows = files = 0
    with ExitStack() as opened:
        for chunk in chunks:
            if rows >= files * FILE_ROWS:
                opened.close()
                path = folder / f"part-{files:05}.{file_format}"
                write = opened.enter_context(_opened(path, chunk.rows.schema, file_format))
                files += 1
            write(chunk)
            rows += chunk.rows.num_rows
            written(chunk.rows.num_rows)
    return rows


@contextmanager
def _opened(path: Path, schema: pa.Schema, file_format: str) -> Iterator[Callable[[Chunk], object]]:
    with path.open("wb") as file:
        if file_format == "parquet":
            with pq.ParquetWriter(file, schema, compression="snappy", store_schema=False) as writer:
                yield lambda chunk: writer.write_batch(chunk.rows)
        else:
            file.write((",".join(schema.names) + "\n").encode() if file_format == "csv" else b"")
            yield lambda chunk: file.write(_bytes(_lines(chunk, is_json=file_format == "json")))


def _bytes(lines: pa.StringArray) -> memoryview:
    """The lines, which end with a line feed and lie one behind the other in memory."""
    _, offsets, text = lines.buffers()
    return memoryview(text)[: np.frombuffer(offsets, dtype=np.int32)[lines.offset + len(lines)]]


def _lines(chunk: Chunk, *, is_json: bool) -> pa.StringArray:
    """One JSON object or one line of CSV a row, formatted column by column in Arrow."""
    pieces: list[Any] = []
    for position, name in enumerate(chunk.rows.schema.names):
        texts = _texts(chunk.rows.column(name), quote='"' if is_json else "")
        for column, text, mask in chunk.wrong:
            if column == name:
                texts = pc.if_else(mask, f'"{text}"' if is_json or "," in text else text, texts)
        separator = "," if position else "{" * is_json
        pieces += [f'{separator}"{name}":' if is_json else separator, texts.fill_null("null" if is_json else "")]
    lines = _joined(*pieces, "}\n" if is_json else "\n")
    if not chunk.malformed.any():
        return lines
    spoilt = [
        _malformed(lines[row].as_py()[:-1], variant, is_json=is_json)
        for variant, row in enumerate(np.flatnonzero(chunk.malformed).tolist())
    ]
    return pc.replace_with_mask(lines, chunk.malformed, pa.array(spoilt))


def _malformed(line: str, variant: int, *, is_json: bool) -> str:
    """A line that is no row: one cut off, a bare word, an array in place of an object or too many fields."""
    other = f'["{line[2:12]}", 1]' if is_json else f"{line},surplus,fields"
    return (line[: len(line) // 2], "oops", other)[variant % 3] + "\n"


def _texts(values: pa.Array, *, quote: str) -> pa.StringArray:
    """The values as text: numbers bare, all others in quotes, instants like 2024-01-01T08:15:30.123456Z."""
    if pa.types.is_dictionary(values.type):
        return _texts(values.dictionary, quote=quote).take(values.indices)
    if pa.types.is_timestamp(values.type):
        texts = values.cast(pa.timestamp("us")).cast(pa.string())  # with a zone this takes ten times as long
        return _joined(quote, pc.binary_replace_slice(texts, 10, 11, "T"), f"Z{quote}")
    is_bare = not pa.types.is_string(values.type)
    return values.cast(pa.string()) if is_bare or not quote else _joined(quote, values, quote)


def _joined(*pieces: Any) -> pa.StringArray:
    return pc.binary_join_element_wise(*pieces, "")
