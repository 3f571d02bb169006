"""Runs of `job.py` in processes of their own, each with its own event log."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from tests.compare.cases import Run

JOB: Final = Path(__file__).parent / "job.py"
ROWS: Final = 12_000
PIECES: Final = 20
PIECE_BYTES: Final = 20_000
FILES: Final = 8
PATIENCE_SECONDS: Final = 240
BASE: Final = {
    "spark.master": "local[4,4]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.hadoopRDD.ignoreEmptySplits": "false",
    "spark.sql.files.openCostInBytes": "256m",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
NOWHERE: Final = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost", "SPARK_USER": "somebody"}
"""No log tells where it was made, and by whom."""


def make_tables(folder: Path) -> None:
    """Writes the sales of a usual day, of one with three times as many, of one with a hot shop; and the products."""
    names = [f"product {number}" for number in range(200)]
    _write(folder / "products", pa.table({"product": np.arange(200), "name": names}), files=1)
    _write(folder / "sales", _sales(ROWS), files=FILES)
    _write(folder / "more_sales", _sales(3 * ROWS), files=FILES)
    _write(folder / "hot_sales", _sales(ROWS, hot=0.9), files=FILES)


def run(folder: Path, *wanted: Run) -> list[Path]:
    """Runs the program on the tables in a folder and on a source that takes its time, and gives its event logs.

    Several runs follow each other in one process, each with a context of its own and the properties of the first.
    """
    own = folder / wanted[0].name
    conf, log = own / "conf", own / "log"
    conf.mkdir(parents=True)
    log.mkdir()
    chosen = {**BASE, "spark.eventLog.dir": log.as_uri(), **wanted[0].properties}
    lines = "".join(f"{key} {value}\n" for key, value in chosen.items())
    (conf / "spark-defaults.conf").write_text(lines, encoding="utf-8")
    places = {"SPARK_HOME": str(_home(own)), "SPARK_CONF_DIR": str(conf), "PYSPARK_PYTHON": sys.executable}
    with ExitStack() as stack:
        sources = [
            stack.enter_context(_source(own / f"{one.name}-lines", seconds=one.source_seconds)) for one in wanted
        ]
        planted = [{"lines": source, **one.planted} for source, one in zip(sources, wanted, strict=True)]
        done = subprocess.run(
            [sys.executable, str(JOB), str(folder), *map(json.dumps, planted)],
            env=os.environ | NOWHERE | places,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return sorted(log.iterdir(), key=lambda file: file.stat().st_mtime)


def _home(folder: Path) -> Path:
    """A home of Spark in which the workers of a local cluster leave behind what they do."""
    home = folder / "spark"
    home.mkdir()
    for part in ("bin", "jars"):
        (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    return home


@contextmanager
def _source(folder: Path, *, seconds: float) -> Iterator[str]:
    """A folder of two files that give what they hold over a time, as a slow disk does: named pipes, fed by threads.

    Each holds one long line: Spark takes a pipe for an empty file, of which it reads the line at its beginning.
    """
    folder.mkdir()
    feeders = []
    for number in range(2):
        pipe = folder / f"part-{number}"
        os.mkfifo(pipe)
        feeders.append(threading.Thread(target=_feed, args=(pipe, seconds), daemon=True))
        feeders[-1].start()
    yield str(folder)
    for feeder in feeders:
        feeder.join(1)
        assert not feeder.is_alive(), "the program has not read its source to the end"


def _feed(pipe: Path, seconds: float) -> None:
    with pipe.open("wb", buffering=0) as out:
        for _ in range(PIECES):
            out.write(b"x" * PIECE_BYTES)
            time.sleep(seconds / PIECES)


def _sales(rows: int, *, hot: float = 0.0) -> pa.Table:
    """Sales of which most are of one product, which does no harm as long as they are not brought together by it."""
    draw = np.random.default_rng(7)
    shops = draw.integers(0, 2000, rows)
    shops[draw.random(rows) < hot] = 7
    products = draw.integers(0, 200, rows)
    products[draw.random(rows) < 0.97] = 7
    sales = np.arange(rows)
    is_last = (sales + 1) % (rows // FILES) == 0
    return pa.table({"sale": sales, "product": products, "shop": shops, "is_last": is_last})


def _write(folder: Path, table: pa.Table, *, files: int) -> None:
    folder.mkdir()
    size = -(-table.num_rows // files)
    for number in range(files):
        pq.write_table(table.slice(number * size, size), folder / f"{number}.parquet")
