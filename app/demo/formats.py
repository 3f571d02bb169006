"""Writes chunks of rows as JSON Lines (plain or gzip), CSV or Parquet: same rows, same bytes."""

import gzip
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.demo.text import Chunk, csv_lines, json_lines

FORMATS: Final = ("json", "json.gz", "csv", "parquet")
CHUNK_ROWS: Final = 50_000
FILE_ROWS: Final = 1_000_000

_GZIP_LEVEL: Final = 4


def has_text_faults(file_format: str) -> bool:
    """Whether a format can hold malformed rows and values of a wrong type."""
    return file_format != "parquet"


def write_files(folder: Path, chunks: Iterator[Chunk], *, file_format: str, written: Callable[[int], None]) -> None:
    """Writes `part-00000`, `part-00001`, ... of at most 1,000,000 rows each; one chunk is in memory at a time.

    Args:
        folder: Where the files go.
        chunks: The rows; all chunks but the last are of `CHUNK_ROWS` rows.
        file_format: One of `FORMATS`.
        written: Called with the number of rows of each chunk, once it is written.
    """
    for part, first in enumerate(chunks):
        with _WRITERS[file_format](folder / f"part-{part:05}.{file_format}", first.rows.schema) as write:
            for chunk in _of_one_file(first, chunks):
                write(chunk)
                written(chunk.rows.num_rows)


def _of_one_file(first: Chunk, others: Iterator[Chunk]) -> Iterable[Chunk]:
    yield first
    for _ in range(FILE_ROWS // CHUNK_ROWS - 1):
        chunk = next(others, None)
        if chunk is None:
            return
        yield chunk


Write = Callable[[Chunk], None]


@contextmanager
def _json_file(path: Path, _schema: pa.Schema) -> Iterator[Write]:
    with path.open("wb") as file:
        yield lambda chunk: _write_text(file, json_lines(chunk))


@contextmanager
def _gzip_file(path: Path, _schema: pa.Schema) -> Iterator[Write]:
    # No file name and no time in the header: both would make the bytes differ.
    with path.open("wb") as file, gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as zipped:
        yield lambda chunk: _write_text(zipped, json_lines(chunk))


@contextmanager
def _csv_file(path: Path, schema: pa.Schema) -> Iterator[Write]:
    with path.open("wb") as file:
        file.write((",".join(schema.names) + "\n").encode())
        yield lambda chunk: _write_text(file, csv_lines(chunk))


@contextmanager
def _parquet_file(path: Path, schema: pa.Schema) -> Iterator[Write]:
    with path.open("wb") as file, pq.ParquetWriter(file, schema, compression="snappy", store_schema=False) as writer:
        yield lambda chunk: writer.write_batch(chunk.rows)


_WRITERS: Final = {"json": _json_file, "json.gz": _gzip_file, "csv": _csv_file, "parquet": _parquet_file}


def _write_text(file: IO[bytes] | gzip.GzipFile, lines: pa.StringArray) -> None:
    """Writes the lines, which end with a line feed and lie one behind the other in memory."""
    _, offsets, text = lines.buffers()
    end = np.frombuffer(offsets, dtype=np.int32)[lines.offset + len(lines)]
    file.write(memoryview(text)[:end])
