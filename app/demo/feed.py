"""Sends a generated stream at its rate, in the foreground or beside queries; files in a landing folder."""

import datetime
import itertools
import re
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Self

from app.demo import event_stream
from app.demo.event_records import TOPICS, Record
from app.demo.ledger import Plan, Tally
from spark_app.local_files import write_atomic

DEMO_RATE: Final = 10.0
"""Records per second: as many as keep a tenth of the demo shop's customers busy."""
DROP_SECONDS: Final = 2.0
"""How often a file per topic is written."""
SEND_SECONDS: Final = 0.05
"""How often records are handed to Kafka's producer."""
MAX_RECORDS: Final = 5_000
"""Records of one call: a sender that is behind fills many files of bounded size."""
MAX_FILES: Final = 1_800
"""Generated files that each topic keeps: an hour at one file in two seconds.

The oldest are deleted while new ones are written. Age does not count: a query that was stopped for a day still finds
the files of the batch that it had begun.
"""
_GENERATED: Final = re.compile(r"\d{8}T\d{9}-\d+-\d{8}\.jsonl")


Note = Callable[[str], None]


def now() -> datetime.datetime:
    """The present instant to the millisecond, which is the name of a stream that starts now."""
    instant = datetime.datetime.now(datetime.UTC)
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def paced(
    plan: Plan, *, every: float, stop: threading.Event | None = None, count: int = sys.maxsize, head_start: float = 0
) -> Iterator[Sequence[Record]]:
    """The first records of a plan, in groups, each as soon as its last record is due; ends early when stopped.

    Args:
        plan: What determines the records.
        every: Seconds between two groups.
        stop: Ends the wait, and the records.
        count: How many records.
        head_start: Seconds whose records are due at once.
    """
    records, stop, now, sent = event_stream.records(plan), stop or threading.Event(), time.monotonic(), 0
    began, end = now - head_start, now - head_start + count / plan.rate
    for tick in itertools.count(1):
        due = min(int((time.monotonic() - began) * plan.rate), count)
        while sent < due and not stop.is_set():
            group = list(itertools.islice(records, min(due - sent, MAX_RECORDS)))
            sent += len(group)
            yield group
        if sent == count or stop.wait(max(0.0, min(now + tick * every, end) - time.monotonic())):
            return


class Landing:
    """Drops files that appear whole or not at all; their names are in the order of their records."""

    def __init__(self, folder: Path, stream: str) -> None:
        """Files of a stream; `stream` is the name of its plan."""
        self._folder, self._stream, self._files = folder, stream, 0
        self._kept: dict[str, deque[Path]] = {}

    def send(self, records: Sequence[Record]) -> None:
        """Writes one file per topic.

        Raises:
            OSError: A file cannot be written; the same records can be sent again, and no file is written twice.
        """
        values = defaultdict(list)
        for record in records:
            values[record.topic].append(record.value)
        for topic, lines in values.items():
            file = self._folder / topic / f"{self._stream}-{self._files:08}.jsonl"
            if not file.exists():
                write_atomic(file, b"\n".join([*lines, b""]))
                self._keep(topic, file)
        self._files += 1

    def prepare(self) -> None:
        """Creates the folder of each topic, which a query needs before the first file comes.

        Raises:
            OSError: A folder cannot be created.
        """
        for topic in TOPICS:
            (self._folder / topic).mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        """Nothing to close: all files are written."""

    def _keep(self, topic: str, file: Path) -> None:
        if topic not in self._kept:
            self._kept[topic] = deque(generated_files(file.parent)[:-1])
        self._kept[topic].append(file)
        while len(self._kept[topic]) > MAX_FILES:
            self._kept[topic].popleft().unlink(missing_ok=True)


def generated_files(topic: Path) -> list[Path]:
    """The generated files of a topic, oldest first; files of other origin have other names."""
    return sorted(path for path in topic.glob("*.jsonl") if _GENERATED.fullmatch(path.name))


class Feed:
    """Drops files into a landing folder in the background, from entering to leaving the with-statement.

    It never fails those beside it: what the disk refuses is noted once, and written when there is room. Each feed has
    ids of its own, since they contain its start; so another feed may have written to the folder before. Records of the
    seconds of `history` before now are written at once, so that windows are there to be closed.
    """

    def __init__(
        self, folder: Path, *, rate: float = DEMO_RATE, currency: str = "EUR", history: float = 0, note: Note
    ) -> None:
        self._plan = Plan(start=now() - datetime.timedelta(seconds=history), rate=rate, currency=currency)
        self._folder, self._history, self._note, self._is_noted = folder, history, note, False
        self._files, self._tally = Landing(folder, self._plan.name), Tally(self._plan)
        self._stop, self._thread = threading.Event(), threading.Thread(target=self._run, name="feed", daemon=True)

    def __enter__(self) -> Self:
        self._attempt(self._files.prepare)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._attempt(lambda: self._tally.write(self._folder))

    def _run(self) -> None:
        for group in paced(self._plan, every=DROP_SECONDS, stop=self._stop, head_start=self._history):
            while not self._attempt(partial(self._files.send, group)):
                if self._stop.wait(DROP_SECONDS):
                    return
            self._tally.add(group)

    def _attempt(self, write: Callable[[], object]) -> bool:
        try:
            write()
        except OSError as error:
            if not self._is_noted:
                self._note(f"the demo feed cannot write to {self._folder}: {error.strerror or error}; it tries again")
            self._is_noted = True
            return False
        return True
