"""Rows per second and state of `streaming.events`, which reads a topic of a real broker.

BENCH_RECORDS (2000000) and BENCH_KEYS (5000000) make it shorter for a try; both must fill two batches of 200,000.
"""

import itertools
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from app.demo import event_stream
from app.demo.kafka_topics import KafkaTopics
from app.demo.ledger import Plan
from spark_app.settings import PROJECT
from spark_app.spark.kafka import client_options
from tests.bench import plain_query
from tests.bench.days import DAY, SMALL, raw, without_event_log
from tests.bench.measure import CACHE, Measured, pinned, ratio, run, side_by_side
from tests.kafka import Broker, running_broker

RECORDS: Final = int(os.environ.get("BENCH_RECORDS", "2000000"))
KEYS: Final = int(os.environ.get("BENCH_KEYS", "5000000"))
RATE: Final = 5_000
"""Events per second of event time: none leaves the state while it is measured, as the watermark is half an hour."""
MAX_AT_ONCE: Final = 10_000
TOPIC: Final = "user_events"
WAREHOUSE: Final = "data/warehouse"
CONFIG: Final = PROJECT / "config"
DEFAULTS: Final = (CONFIG / "spark" / "spark-defaults.conf", CONFIG / "spark" / "streaming.conf")


@dataclass(frozen=True)
class Drained:
    """A query that has read all records of a topic.

    Attributes:
        whole: The process from start to end.
        rows_per_second: Rows after the first commit, over the seconds from it to the last one.
        rows: Rows of the table.
        state_bytes: Size of the checkpoint.
    """

    whole: Measured
    rows_per_second: float
    rows: int
    state_bytes: int


def throughput(scratch: Path) -> list[str]:
    """What telemetry costs a query, and what it takes beside a plain query."""
    silent = without_event_log(scratch / "silent")
    off = {"OTEL_SDK_DISABLED": "true"}
    with filled_broker(scratch / "broker", RECORDS) as broker:
        home = base_home(scratch / "base")
        ours = partial(drained, broker, home, config=CONFIG)
        telemetry = side_by_side("stream telemetry", ours, partial(drained, broker, home, config=silent, variables=off))
        plain = side_by_side("stream : plain", ours, partial(drained_by_script, broker, home))
    return [
        "| `streaming.events` : the other | seconds per row | goal | CPU | rows/s | rows/s of the other |",
        "|---|---|---|---|---|---|",
        _line("without telemetry and event log", "<= 1.02", *telemetry),
        _line("a plain PySpark query", "<= 1.05", *plain),
        "",
        f"{RECORDS:,} events from Kafka with the default faults, batches of 200,000, no event leaves the state. Both",
        "sides at the same time, each on a core of its own, cores swapped each round; rows/s are of one core, from the",
        "first commit to the last one. CPU is that of the whole process. The interval is that of the mean at 95 %.",
        f"The plain query appends {plain[1][-1].rows - plain[0][-1].rows:+,} rows, with malformed values.",
    ]


def state(scratch: Path) -> list[str]:
    """Memory and checkpoint of millions of keys."""
    with filled_broker(scratch / "broker", KEYS, shares={}) as broker:
        measured = drained(broker, base_home(scratch / "base"), config=CONFIG)
    memory, checkpoint = (f"{size / 1e6:,.0f} MB" for size in (measured.whole.peak_bytes, measured.state_bytes))
    return [
        "| keys of the state | rows/s | peak memory (Python + JVM) | checkpoint |",
        "|---|---|---|---|",
        f"| {measured.rows:,} | {measured.rows_per_second:,.0f} | {memory} | {checkpoint} |",
        "",
        "`streaming.events` on both cores, one run; `spark.driver.memory` as shipped (2g). RocksDB is outside of it.",
    ]


def drained(
    broker: Broker,
    home: Path,
    *,
    config: Path,
    variables: Mapping[str, str] | None = None,
    core: int | None = None,
) -> Drained:
    """The query of the project, until it has read everything; on one core if one is given."""
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
        shutil.copytree(home, folder, dirs_exist_ok=True)
        command = [sys.executable, "-m", "spark_app", "streaming", "events", "--available-now", "--config", str(config)]
        places = {"SPARK_APP_HOME": folder, "SPARK_APP_KAFKA__SERVERS": broker.servers}
        whole = run([*pinned(core), *command], places | dict(variables or {}))
        checkpoint = Path(folder, "data/checkpoints")
        return _drained("query", whole, Path(folder, WAREHOUSE, "events"), checkpoint)


def drained_by_script(broker: Broker, home: Path, *, core: int | None = None) -> Drained:
    """The plain query, until it has read everything."""
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
        warehouse = Path(shutil.copytree(home / WAREHOUSE, Path(folder, "warehouse")))
        arguments = [broker.servers, str(warehouse), *map(str, DEFAULTS)]
        whole = run([*pinned(core), sys.executable, str(plain_query.__file__), *arguments], {}, folder=Path(folder))
        return _drained("script", whole, warehouse / "events", warehouse / "checkpoint")


def _drained(name: str, whole: Measured, table: Path, checkpoint: Path) -> Drained:
    commits = [commit for commit in commits_of(table) if commit[1]]
    (first, _), (last, _) = commits[0], commits[-1]
    after = sum(rows for _, rows in commits[1:])
    rate = after / (last - first)
    size = sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file())
    print(f"  {name}: {whole.cpu:.1f} s CPU, {whole.wall:.1f} s, {rate:,.0f} rows/s", flush=True)
    return Drained(whole, rate, sum(rows for _, rows in commits), size)


def commits_of(table: Path) -> list[tuple[float, int]]:
    """When each commit of a Delta table could be seen, in seconds since 1970, and how many rows it added."""
    files = sorted(table.glob("_delta_log/*.json"))
    return [(file.stat().st_mtime, sum(rows_of(action) for action in added_by(file))) for file in files]


def added_by(commit: Path) -> Iterator[Mapping[str, str]]:
    """The data files that a commit added."""
    actions = map(json.loads, commit.read_text(encoding="utf-8").splitlines())
    return (action["add"] for action in actions if "add" in action)


def rows_of(added: Mapping[str, str]) -> int:
    """How many rows a data file has."""
    return int(json.loads(added["stats"])["numRecords"])


def base_home(folder: Path) -> Path:
    """A home whose table of customers is that of a small day."""
    command = [sys.executable, "-m", "spark_app", "etl", "customers", "--date", DAY.isoformat()]
    run(command, {"SPARK_APP_HOME": str(folder), "SPARK_APP_RAW__PATH": str(raw(SMALL))})
    return folder


@contextmanager
def filled_broker(folder: Path, count: int, *, shares: Mapping[str, int] | None = None) -> Iterator[Broker]:
    """A broker with so many events; those of all kinds of fault, unless shares of them are given."""
    start = datetime(2024, 1, 2, 8, tzinfo=UTC)
    plan = Plan(start=start, rate=RATE) if shares is None else Plan(start=start, rate=RATE, shares=dict(shares))
    folder.mkdir()
    with running_broker(folder) as broker:
        print(f"sending {count:,} events", flush=True)
        topics = KafkaTopics(client_options(broker.kafka))
        events = (record for record in event_stream.records(plan) if record.topic == TOPIC)
        for left in range(count, 0, -MAX_AT_ONCE):
            topics.send(list(itertools.islice(events, min(left, MAX_AT_ONCE))))
        topics.close()
        yield broker


def _line(name: str, goal: str, ours: Sequence[Drained], others: Sequence[Drained]) -> str:
    rates = [[side.rows_per_second for side in sides] for sides in (ours, others)]
    cpu = ratio([side.whole.cpu for side in ours], [side.whole.cpu for side in others])
    medians = " | ".join(f"{statistics.median(each):,.0f}" for each in rates)
    return f"| {name} | {ratio(rates[1], rates[0])} | {goal} | {cpu} | {medians} |"
