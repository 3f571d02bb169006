"""Writes chunks of rows as JSON Lines, CSV or Parquet: same rows, same bytes."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.demo.columns import DAY_US
from app.demo.draws import Ints, Mask

CHUNK_ROWS: Final = 50_000
FILE_ROWS: Final = 1_000_000

Write = Callable[["Chunk"], object]


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of one source, and what is wrong with their text.

    Attributes:
        rows: The rows, typed.
        wrong: By column, texts that are not of its type, and the rows that have them.
        malformed: Positions of rows to be written as lines that are no row, in rising order.
    """

    rows: pa.RecordBatch
    wrong: Mapping[str, Sequence[tuple[str, Mask]]] = field(default_factory=dict)
    malformed: Sequence[int] = ()


def line_numbers(lines: int) -> Iterator[Ints]:
    """The numbers of all lines, in the parts that are generated one at a time."""
    return (np.arange(start, min(start + CHUNK_ROWS, lines)) for start in range(0, lines, CHUNK_ROWS))


def write_files(
    folder: Path, chunks: Iterator[Chunk], *, schema: pa.Schema, file_format: str, written: Callable[[int], object]
) -> int:
    """Writes `part-00000`, `part-00001`, ... of about 1,000,000 rows each; one chunk is in memory at a time.

    Args:
        folder: Where the files go.
        chunks: The rows.
        schema: Of the rows.
        file_format: `json`, `csv` or `parquet`.
        written: Called with the number of rows of each chunk, once it is written.

    Returns:
        The number of rows.
    """
    rows = 0
    for part, numbered in itertools.groupby(_in_parts(chunks), itemgetter(0)):
        with _opened(folder / f"part-{part:05}.{file_format}", schema, file_format) as write:
            for _, chunk in numbered:
                write(chunk)
                rows += chunk.rows.num_rows
                written(chunk.rows.num_rows)
    return rows


def _in_parts(chunks: Iterator[Chunk]) -> Iterator[tuple[int, Chunk]]:
    rows = 0
    for chunk in chunks:
        yield rows // FILE_ROWS, chunk
        rows += chunk.rows.num_rows


@contextmanager
def _opened(path: Path, schema: pa.Schema, file_format: str) -> Iterator[Write]:
    with path.open("wb") as file:
        if file_format == "parquet":
            with pq.ParquetWriter(file, schema, compression="snappy", store_schema=False) as writer:
                yield lambda chunk: writer.write_batch(chunk.rows)
        else:
            if file_format == "csv":
                file.write((",".join(schema.names) + "\n").encode())
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
        for text, mask in chunk.wrong.get(name, ()):
            texts = pc.if_else(mask, f'"{text}"' if is_json or "," in text else text, texts)
        separator = "," if position else "{" * is_json
        pieces += [f'{separator}"{name}":' if is_json else separator, texts.fill_null("null" if is_json else "")]
    lines = _joined(*pieces, "}\n" if is_json else "\n")
    mask = np.zeros(len(lines), dtype=np.bool_)
    mask[list(chunk.malformed)] = True
    spoilt = malformed_json if is_json else malformed_csv
    others = [spoilt(lines[row].as_py(), variant) for variant, row in enumerate(chunk.malformed)]
    return pc.replace_with_mask(lines, mask, pa.array(others, pa.string())) if others else lines


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
    days = pc.divide(micros, DAY_US)
    first, last = (bound.as_py() for bound in pc.min_max(days).values())
    dates = pa.array(range(first, last + 1), pa.int32()).cast(pa.date32()).cast(pa.string())
    times = pc.subtract(micros, pc.multiply(days, DAY_US)).cast(pa.time64("us")).cast(pa.string())
    return _joined(quote, dates.take(pc.subtract(days, first)), "T", times, "Z" + quote)


def _joined(*pieces: Any) -> pa.StringArray:
    return pc.binary_join_element_wise(*pieces, "")
