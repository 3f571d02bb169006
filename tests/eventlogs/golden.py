"""The recorded logs of `job.py`, one of each Spark in each layout, and the tree of spans that all of them give."""

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Final

import zstandard

from spark_app.eventlog.spans import SparkSpan
from tests.eventlogs.record import HERE, VERSIONS

LOGS: Final = [(version, layout) for version in VERSIONS for layout in ("plain", "zstd", "rolled-zstd")]
_COUNTS: Final = ("batch.rows", "skipped", "stage.tasks", "records")


def log(version: str, layout: str, folder: Path) -> Path:
    """A recorded log; a plain one, which is kept packed, is unpacked to a folder."""
    if layout == "rolled-zstd":
        return next((HERE / version / layout).iterdir())
    packed = next((HERE / version / "plain").iterdir())
    if layout == "zstd":
        return packed
    plain = folder / packed.stem
    plain.write_bytes(zstandard.ZstdDecompressor().decompressobj().decompress(packed.read_bytes()))
    return plain


def delivered(version: str, folder: Path) -> Path:
    """A recorded log as Databricks delivers it: packed files of an hour each, and what is not over.

    Each begins with an event of Databricks. Source: `DatabricksEventLog` of the RAPIDS tools.
    """
    lines = log(version, "plain", folder).read_bytes().splitlines(keepends=True)
    files = folder / "delivered" / "4242424242"
    files.mkdir(parents=True)
    third = len(lines) // 3
    for number, name in enumerate(("eventlog-2024-01-01--10-00.gz", "eventlog-2024-01-01--11-00.gz", "eventlog")):
        first = {"Event": "DBCEventLoggingListenerMetadata", "Rollover Number": number, "Spark Version": version}
        part = lines[number * third :] if name == "eventlog" else lines[number * third : (number + 1) * third]
        content = json.dumps(first, separators=(",", ":")).encode() + b"\n" + b"".join(part)
        (files / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return files


def tree(found: list[SparkSpan]) -> str:
    """Spans but for tasks as an indented tree, in the order of time, with rows and counts and the type of a failure.

    A stage that fails does so when some of its tasks have.
    """
    below, ids = defaultdict[int | None, list[SparkSpan]](list), {span.ids.span_id for span in found}
    for span in sorted(found, key=lambda span: (span.started, span.ended)):
        parent = span.ids.parent_id
        below[parent if parent in ids else None].append(span)

    def lines(parent: int | None, depth: int) -> list[str]:
        return [
            line
            for span in below[parent]
            if span.kind.prefix != "task"
            for line in ("  " * depth + _line(span), *lines(span.ids.span_id, depth + 1))
        ]

    return "\n".join(lines(None, 0)) + "\n"


def _line(span: SparkSpan) -> str:
    counts = {
        key.rpartition("spark.")[2]: value for key, value in sorted(span.attributes.items()) if key.endswith(_COUNTS)
    }
    shown = [f"{key}={value}" for key, value in counts.items() if value and not span.failure]
    return " ".join([span.name, *shown, *([f"failed: {span.failure.type}"] if span.failure else [])])
