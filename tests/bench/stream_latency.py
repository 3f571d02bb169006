"""How soon streaming queries show what producers send, and when they are back after a kill.

BENCH_SECONDS (60) makes it shorter for a try.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml
from pyarrow import parquet

from spark_app.runs import stream_status
from spark_app.settings import PROJECT
from tests.bench.measure import ROUNDS, spread
from tests.bench.streaming import CONFIG, TOPIC, WAREHOUSE, added_by, base_home, commits_of, rows_of
from tests.bench.training import app
from tests.kafka import Broker, running_broker
from tests.polling import poll_until
from tests.streaming.moments import kill_all

SECONDS: Final = int(os.environ.get("BENCH_SECONDS", "60"))
RATE: Final = 500
"""Records per second, of which somewhat more than the half are events."""
ALERTS: Final = "purchase_alerts"
REQUESTS: Final = "prediction_requests"
REPLIES: Final = "predictions"
STARTED_SECONDS: Final = 180
SETTLING_SECONDS: Final = 15
"""What is sent in the first seconds of a query is read with cold code, and is not counted."""
TABLE: Final = ["| | p50 ms | p99 ms | most ms | records |", "|---|---|---|---|---|"]
NOTE: Final = (
    f"One query at a time, {RATE} records/s for {SECONDS} s from one producer on the same two cores, the first",
    f"{SETTLING_SECONDS} s left out.",
)
Latencies = Sequence[float]


def latency(scratch: Path) -> list[str]:
    """From produced to visible in Delta."""
    home = base_home(scratch / "base")
    quick = configured(scratch / "quick", "streaming/events", trigger="200 milliseconds")
    return [
        *TABLE,
        row("trigger as shipped (5 seconds)", visible(scratch / "shipped", home, CONFIG)),
        row("trigger 200 milliseconds", visible(scratch / "often", home, quick)),
        "",
        "From the record's timestamp in Kafka to the time of the Delta commit.",
        *NOTE,
    ]


def alert_latency(scratch: Path) -> list[str]:
    """From a purchase to its alert."""
    home = base_home(scratch / "base")
    configs = {
        "micro-batches as shipped (1 second)": micro(scratch),
        "micro-batches each millisecond, so one after the other": micro(scratch, "1 millisecond"),
        "real-time mode (goal: p99 < 100 ms)": real(scratch),
    }
    return [
        *TABLE,
        *(row(name, alerted(scratch / f"home {config.name}", home, config)) for name, config in configs.items()),
        "",
        "From the timestamp of the purchase in Kafka to that of its alert.",
        *NOTE,
    ]


def prediction_latency(scratch: Path) -> list[str]:
    """From a request to its reply."""
    regression = {"logistic_regression": {"regParam": [0.01], "maxIter": [50]}}
    home, trained = scratch / "trained", configured(scratch / "training", "ml/refunds", candidates=regression, folds=2)
    app(home, trained, "ml")
    often = configured(scratch / "often", "streaming/predictions", trigger="1 millisecond")
    configs = {"trigger as shipped (1 second)": CONFIG, "micro-batches one after the other": often}
    return [
        *TABLE,
        *(row(name, replied(scratch / f"home {config.name}", home, config)) for name, config in configs.items()),
        "",
        "From the timestamp of the request in Kafka to that of its reply; a logistic regression in production.",
        *NOTE,
    ]


def recovery(scratch: Path) -> list[str]:
    """How long a killed query takes until its table grows again, and until it has caught up."""
    home = base_home(scratch / "base")
    with running_broker(new(scratch / "broker")) as broker, producing(broker, 3 * SECONDS):
        table = home / WAREHOUSE / "events"
        with running("events", home, CONFIG, broker) as process:
            wait_for(lambda: len(commits(table)) >= 5, process, "five batches")
            before = len(commits(table))
            kill_all(process)
        killed = time.time()
        with running("events", home, CONFIG, broker) as process:
            wait_for(lambda: len(commits(table)) > before, process, "a batch after the kill")
            again = commits(table)[before].stat().st_mtime - killed
            wait_for(lambda: len(commits(table)) > before + 4, process, "four more batches")
            stop(process)
        late = latencies_in_delta(table, sent_at(broker, TOPIC), after=before)
        behind = max(late.values())
    return [
        "| `streaming.events`, killed by SIGKILL and started again at once | s |",
        "|---|---|",
        f"| until its first commit, with all that had been sent meanwhile | {again:.1f} |",
        f"| the oldest record had waited | {behind / 1000:.1f} |",
        "",
        f"{RATE} records/s go on meanwhile; one kill. The start of Python, the JVM and the session is a part of it.",
    ]


def first_batch(scratch: Path) -> list[str]:
    """From `make run-streaming` to the first rows, in a clone that is set up."""
    rounds = [_first_rows(scratch / f"first-{turn}") for turn in range(ROUNDS)]
    names = ("of any query", "of `streaming.events`")
    return [
        "| `make run-streaming` in a clone that is set up, until the first rows | s | goal |",
        "|---|---|---|",
        *(
            f"| {name} | {spread(figures)} | <= 20 |"
            for name, figures in zip(names, zip(*rounds, strict=True), strict=True)
        ),
        "",
        f"{ROUNDS} rounds, each with an empty home folder: nine queries and the generator start on two cores.",
    ]


def _first_rows(home: Path) -> tuple[float, float]:
    """Seconds until the first commit with rows of any table, and of that of events."""
    tables = new(home) / WAREHOUSE
    began = time.time()
    with (home / "output.txt").open("w") as output:
        command = ["make", "--no-print-directory", "run-streaming"]
        environment = {**os.environ, "SPARK_APP_HOME": str(home)}
        process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=output, stderr=output, text=True)
    try:
        wait_for(lambda: rows_in(tables / "events") > 0, process, "rows of events")
        written = [table for table in tables.iterdir() if table.name != "customers" and rows_in(table)]
        return min(map(_first_commit, written)) - began, _first_commit(tables / "events") - began
    finally:
        kill_all(process)


def _first_commit(table: Path) -> float:
    """When a table got its first rows, in seconds since 1970."""
    return next(at for at, rows in commits_of(table) if rows)


def visible(folder: Path, home: Path, config: Path) -> Latencies:
    """Milliseconds from produced to visible of each event."""
    own = Path(shutil.copytree(home, folder))
    table = own / WAREHOUSE / "events"
    with running_broker(new(folder / "broker")) as broker:
        with running("events", own, config, broker) as process:
            began = produced(broker)
            sent = sent_at(broker, TOPIC)
            wait_for(lambda: rows_in(table) >= len(sent), process, f"{len(sent)} rows")
            stop(process)
        latencies = latencies_in_delta(table, sent)
    return [latencies[event] for event in latencies if sent[event] >= began + SETTLING_SECONDS * 1000]


def alerted(folder: Path, home: Path, config: Path) -> Latencies:
    """Milliseconds from a purchase to its alert."""
    return answered("alerts", folder, home, config, topics=(TOPIC, ALERTS), key="event_id")


def replied(folder: Path, home: Path, config: Path) -> Latencies:
    """Milliseconds from a request to its reply."""
    return answered("predictions", folder, home, config, topics=(REQUESTS, REPLIES), key="request_id")


def answered(query: str, folder: Path, home: Path, config: Path, *, topics: tuple[str, str], key: str) -> Latencies:
    """Milliseconds from a record of one topic to that of the other with the same key."""
    own = Path(shutil.copytree(home, folder))
    with running_broker(new(folder / "broker")) as broker:
        for topic in topics:
            broker.create(topic)
        with running(query, own, config, broker) as process:
            wait_for(lambda: began_to_read(own), process, "a query that reads")
            began = produced(broker)
            poll_until(lambda: is_quiet(broker, topics[1], key), "no further answer", pause=1)
            stop(process)
        sent, answers = (sent_at(broker, topic, key) for topic in topics)
    return [answers[each] - sent[each] for each in answers if sent[each] >= began + SETTLING_SECONDS * 1000]


def is_quiet(broker: Broker, topic: str, key: str) -> bool:
    """Whether nothing was sent to a topic in the last seconds."""
    answers = sent_at(broker, topic, key)
    return bool(answers) and max(answers.values()) < (time.time() - 3) * 1000


def began_to_read(home: Path) -> bool:
    """Whether a query waits for records."""
    return any(status.state in ("running", "idle") for status in stream_status.running(home / "runs"))


def micro(scratch: Path, trigger: str = "1 second") -> Path:
    """A configuration that alerts each purchase, in micro-batches."""
    return configured(scratch / f"micro {trigger}", "streaming/alerts", trigger=trigger, limits={"EUR": "0.01"})


def real(scratch: Path) -> Path:
    """A configuration that alerts each purchase, in real-time mode."""
    return configured(scratch / "real-time", "streaming/alerts", real_time="5 minutes", limits={"EUR": "0.01"})


def configured(folder: Path, pipeline: str, **changes: object) -> Path:
    """A copy of the configuration with changes of a pipeline: `streaming/events`."""
    shutil.copytree(PROJECT / "config", folder)
    path = folder / f"{pipeline}.yml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))
    return folder


@contextmanager
def running(query: str, home: Path, config: Path, broker: Broker) -> Iterator[subprocess.Popen[str]]:
    """A query that runs; it does not outlive the block."""
    command = [sys.executable, "-m", "spark_app", "streaming", query, "--config", str(config)]
    environment = {**os.environ, "SPARK_APP_HOME": str(home), "SPARK_APP_KAFKA__SERVERS": broker.servers}
    with (home / "output.txt").open("a") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, text=True)
    try:
        yield process
    finally:
        kill_all(process)


def stop(process: subprocess.Popen[str]) -> None:
    """Ends a query after the batch in hand."""
    process.send_signal(signal.SIGTERM)
    process.wait(120)


@contextmanager
def producing(broker: Broker, seconds: int) -> Iterator[None]:
    """A producer beside other work; it does not outlive the block."""
    process = subprocess.Popen(_stream_command(seconds), env=_stream_environment(broker), stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def produced(broker: Broker) -> float:
    """Sends a stream; when it began, in milliseconds since 1970."""
    began = time.time() * 1000
    subprocess.run(_stream_command(SECONDS), env=_stream_environment(broker), check=True, stdout=subprocess.DEVNULL)
    return began


def _stream_command(seconds: int) -> list[str]:
    options = ["--rate", str(RATE), "--for", f"{seconds}s", "--to", "kafka", "--faults", "none"]
    return [sys.executable, "-m", "spark_app", "data", "stream", *options]


def _stream_environment(broker: Broker) -> Mapping[str, str]:
    return {**os.environ, "SPARK_APP_HOME": str(broker.folder), "SPARK_APP_KAFKA__SERVERS": broker.servers}


def new(folder: Path) -> Path:
    """An empty folder."""
    folder.mkdir()
    return folder


def wait_for(holds: Callable[[], bool], process: subprocess.Popen[str], missing: str) -> None:
    """Waits until something holds while a query runs."""
    poll_until(lambda: holds() or process.poll() is not None, missing, seconds=STARTED_SECONDS, pause=0.2)
    assert process.poll() is None, "the query ended"


def commits(table: Path) -> Sequence[Path]:
    """The commits of a Delta table, in order."""
    return sorted(table.glob("_delta_log/*.json"))


def rows_in(table: Path) -> int:
    """How many rows have been committed to a table."""
    return sum(rows_of(added) for commit in commits(table) for added in added_by(commit))


def sent_at(broker: Broker, topic: str, key: str = "event_id") -> Mapping[str, float]:
    """When each record of a topic was produced, in milliseconds since 1970, by a field of it."""
    return {json.loads(record.value)[key]: record.timestamp for record in broker.records(topic)}


def latencies_in_delta(table: Path, sent: Mapping[str, float], *, after: int = 0) -> Mapping[str, float]:
    """Milliseconds from produced to the commit that has it, by event; of the commits after the first so many."""
    found = dict[str, float]()
    for commit in commits(table)[after:]:
        at = commit.stat().st_mtime * 1000
        for added in added_by(commit):
            events = parquet.read_table(table / added["path"], columns=["event_id"])["event_id"].to_pylist()
            found |= {event: at - sent[event] for event in events if event in sent}
    return found


def row(name: str, latencies: Latencies) -> str:
    """A row of the table."""
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    line = f"| {name} | {cuts[49]:,.0f} | {cuts[98]:,.0f} | {max(latencies):,.0f} | {len(latencies):,} |"
    print(line, flush=True)
    return line
