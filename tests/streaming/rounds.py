"""Streaming queries that are killed again and again, drained, and compared with the truth about their input."""

import base64
import itertools
import json
import logging
import os
import random
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

import yaml
from kafka.consumer.fetcher import ConsumerRecord

from app.demo import event_stream, feed
from app.demo.event_records import MALFORMED, TOPICS, Record
from app.demo.faults import STREAM_SHARES
from app.demo.kafka_topics import KafkaTopics
from app.demo.ledger import Plan
from spark_app.engine.dead_letters import NAME as DEAD_LETTERS
from spark_app.execution.kafka_topics import create_topics
from spark_app.execution.run import load_jobs
from spark_app.spark.kafka import client_options
from tests import models
from tests.integration.home import Home
from tests.integration.processes import make_quick, started
from tests.kafka import Broker
from tests.polling import poll_until
from tests.streaming import tables
from tests.streaming.moments import COMMITS, BetweenCommits, Moment, NewFiles, OrIdle, kill_all, moments_of
from tests.streaming.sentinels import sentinels
from tests.streaming.truth import MINUTE, Rules

LOG: Final = logging.getLogger(__name__)
"""Says when a kill was, with `--log-cli-level=INFO`: a round takes long."""
SHARES: Final = STREAM_SHARES | dict.fromkeys(["very_late", "negative_amount", *MALFORMED], 50)
PLAN: Final = Plan(start=datetime(2024, 1, 1, 8, tzinfo=UTC), rate=1.5, shares=SHARES)
RULES: Final = Rules(window=MINUTE)
"""Short windows: every incarnation of the queries closes some."""
GROUP: Final = 60
"""Records that are in the files of one moment: 40 seconds of event time."""
CONFIG: Final = {
    "trigger": "200 milliseconds",
    "files_per_trigger": 4,
    "records_per_trigger": 120,
    "watermark": "10 minutes",
    "window": "1 minute",
    "gap": "3 minutes",
    "abandoned_after": "2 minutes",
    "click_within": "10 minutes",
}
"""What queries are configured with, where they have such a key: the limits of `RULES`, and small micro-batches.

Four micro-batches must be shorter than `SETTLED_MS`. The first two drop nothing; nor does the one after each that
Delta has already when the query starts again, as after a kill between two commits: it is skipped then, and moves no
watermark.
Records per trigger are those of a topic, of which user events are 5 in 8 records.
"""
CLOSED: Final = ("activity", "sessions", "carts", "attribution")
"""The queries whose last rows wait for a later event: a sentinel."""
MAX_FILES: Final = 3
"""Up to so many files of one kind appear before a kill."""
PATIENCE_SECONDS: Final = 600
ALL: Final = tables.CONTENT.keys()
OUTGOING: Final = ("dead_letters", "purchase_alerts", "predictions")


class Source(Protocol):
    """What queries read."""

    @property
    def variables(self) -> Mapping[str, str]:
        """What makes the program read it."""

    def send(self, records: Sequence[Record]) -> None:
        """Sends records; comes back when all are there."""

    def received(self, topic: str) -> Sequence[bytes]:
        """The values of a topic that queries write."""


class Files:
    """JSON Lines files in a landing folder."""

    def __init__(self, folder: Path) -> None:
        """An empty folder."""
        self._folder, self._landing = folder, feed.Landing(folder, PLAN.name)
        self._moments = 0
        self._landing.prepare()

    @property
    def variables(self) -> Mapping[str, str]:
        """The landing folder."""
        return {"SPARK_APP_STREAM__LANDING": str(self._folder)}

    def send(self, records: Sequence[Record]) -> None:
        """Drops files; Spark reads them in the order of their times, so those of each moment have one of their own."""
        for start in range(0, len(records), GROUP):
            self._landing.send(records[start : start + GROUP])
            moment = PLAN.start.timestamp() + self._moments
            for file in self._folder.glob(f"*/{PLAN.name}-{self._moments:08}.jsonl"):
                os.utime(file, (moment, moment))
            self._moments += 1

    def received(self, topic: str) -> Sequence[bytes]:
        """All lines of the files."""
        return [line for file in (self._folder / topic).glob("*.jsonl") for line in file.read_bytes().splitlines()]


class Topics:
    """Topics of a broker."""

    def __init__(self, broker: Broker) -> None:
        """A broker without topics."""
        self._broker = broker
        create_topics(client_options(broker.kafka), dict.fromkeys([*TOPICS, *OUTGOING], 3))

    @property
    def variables(self) -> Mapping[str, str]:
        """The broker."""
        return {"SPARK_APP_KAFKA__SERVERS": self._broker.servers}

    def send(self, records: Sequence[Record]) -> None:
        """Sends records, each once."""
        topics = KafkaTopics(client_options(self._broker.kafka))
        topics.send(records)
        topics.close()

    def received(self, topic: str) -> Sequence[bytes]:
        """All records of the topic; a dead letter as a line of a file has it."""
        records = self._broker.records(topic)
        return [_line(record) for record in records] if topic == DEAD_LETTERS else [each.value for each in records]


def _line(letter: ConsumerRecord) -> bytes:
    topic = dict(letter.headers)["dead_letter.topic"].decode()
    value = base64.b64encode(letter.value).decode()
    return json.dumps({"dead_letter_id": letter.key.decode(), "topic": topic, "value": value}).encode()


class Round:
    """A home whose queries are killed while they read a stream.

    Attributes:
        sent: All records of the stream.
        kills: At which moment each kill was.
    """

    def __init__(self, home: Home, source: Source, *, records: int, seed: int) -> None:
        """Nothing is sent yet.

        Args:
            home: An empty home folder.
            source: What the queries read.
            records: How many records are sent in all.
            seed: Chooses the moments of the kills.
        """
        self.home, self._source, self._random = home, source, random.Random(seed)
        self.sent = list(itertools.islice(event_stream.records(PLAN), records))
        self.kills: list[str] = []
        self._drained = home.folder / "drain.txt"
        make_quick(home)
        models.promote(home, 1, 0.25)
        for path in (home.settings.config / "streaming").glob("*.yml"):
            keys = yaml.safe_load(path.read_text(encoding="utf-8")).keys() & CONFIG.keys()
            home.configure(f"streaming.{path.stem}", **{key: CONFIG[key] for key in keys})
        jobs = load_jobs(home.settings, "streaming")
        self._jobs = {job.name: job for job in jobs}
        self._moments = [moment for job in jobs for moment in moments_of(home.folder, job)]
        unread = self._jobs.keys() - tables.CONTENT.keys()
        assert not unread, f"no truth is known of {unread}"

    def run(
        self,
        kills: int,
        *,
        between: Mapping[int, str] = MappingProxyType({}),
        disturb: Mapping[int, Callable[[], object]] = MappingProxyType({}),
    ) -> None:
        """Sends the stream in parts, each read by an incarnation that is killed; then drains.

        Args:
            kills: How often the queries are killed.
            between: The query that is killed between the two commits of a micro-batch in the incarnation of a number;
                others are killed at some moment.
            disturb: What else happens in the incarnation of a number, after its first micro-batch.
        """
        share = -(-len(self.sent) // (kills + 1))
        for number in range(kills):
            self._source.send(self.sent[number * share : (number + 1) * share])
            self._kill(number, self._moment(between.get(number)), disturb.get(number))
        self._source.send(self.sent[kills * share :])
        self.drain()
        self._source.send(sentinels(PLAN, len(self.sent)))
        self.drain(*CLOSED)

    def run_some(self, *names: str) -> None:
        """Sends the stream, and lets some queries read it that wait for no later event."""
        assert not set(names) & set(CLOSED)
        self._source.send(self.sent)
        self.drain(*names)

    @property
    def tables(self) -> dict[str, str]:
        """The table that each query writes, if it writes one."""
        return {name: job.pipeline.writes[0].name for name, job in self._jobs.items() if job.pipeline.writes}

    def differences(self, home: Home | None = None, of: Collection[str] = ALL) -> dict[str, Any]:
        """What is lost or too much in some results, in this home or a copy of it; empty if nothing is."""
        wanted = tables.expected(self.sent, RULES)
        found = {name: tables.CONTENT[name](home or self.home, self._source.received) for name in of}
        each = {name: tables.difference(found[name], wanted[name]) for name in of}
        return {name: difference for name, difference in each.items() if difference}

    def drain(self, *names: str) -> None:
        """Lets all queries or some read all that is there, and end."""
        command = ("streaming", *names, "--available-now")
        with started(self.home, stderr=self._drained, command=command, **self._source.variables) as process:
            code = process.wait(PATIENCE_SECONDS)
        assert code == 0, self._drained.read_text(encoding="utf-8")

    def _moment(self, query: str | None) -> Moment:
        """Between the two commits of a query; at random, and at the latest when all queries are idle, if it is None."""
        if query is not None:
            return BetweenCommits(self.home.folder, self._jobs[query])
        chosen = self._random.choice(self._moments)
        return OrIdle(chosen(self._random.randint(1, MAX_FILES)), self.home.folder)

    def _kill(self, number: int, moment: Moment, disturb: Callable[[], object] | None) -> None:
        """Starts the queries, and ends them by SIGKILL at a moment while they are at work."""
        stderr = self.home.folder / f"kill-{number}.txt"
        first_batch = NewFiles(self.home.folder, COMMITS, 1)
        with started(self.home, stderr=stderr, command=("streaming",), **self._source.variables) as process:
            if disturb is not None:
                _wait_for(first_batch, process, stderr)
                disturb()
            _wait_for(moment, process, stderr)
            kill_all(process)
        self.kills.append(str(moment))
        LOG.info("kill %d: %s", number + 1, moment)


def _wait_for(moment: Moment, process: subprocess.Popen[str], stderr: Path) -> None:
    """Waits for a moment in the life of a program, which must not end before."""
    poll_until(
        lambda: moment.has_come(process) or process.poll() is not None,
        lambda: f"it has not come to this: {moment}",
        seconds=PATIENCE_SECONDS,
        pause=moment.pause,
    )
    assert process.poll() is None, f"it ended: {stderr.read_text(encoding='utf-8')}"
