"""The ledger of a generated stream: what determines its records, how many were sent, and what was planted in them."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from app.demo.event_records import TOPICS, Record
from app.demo.event_stream import Plan
from spark_app.errors import InputError
from spark_app.local_files import write_atomic

LEDGERS: Final = "_ledgers"
"""The folder of the ledgers, beside those of the topics; Spark ignores its name."""
MOST_LEDGERS: Final = 100


class StreamLedger(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent of a stream; the plan gives the same records again, so any truth can be computed later.

    Attributes:
        name: The start and the seed of the stream, which all its ids contain.
        plan: What determines the records.
        sent_to: `files` or `kafka`.
        records: How many records of the plan were sent, in order from the first.
        topics: Records by topic.
        planted: Records by what was planted in them.
    """

    name: str
    plan: Plan
    sent_to: str
    records: int
    topics: dict[str, int]
    planted: dict[str, int]


class Tally:
    """Counts records as they are sent."""

    def __init__(self, plan: Plan, sent_to: str) -> None:
        """Nothing was sent yet."""
        self._plan, self._sent_to = plan, sent_to
        self._topics = dict.fromkeys(TOPICS, 0)
        self._planted: Counter[str] = Counter(dict.fromkeys(plan.shares, 0))

    def add(self, records: Iterable[Record]) -> None:
        """Counts records that were sent."""
        for record in records:
            self._topics[record.topic] += 1
            if record.fault is not None:
                self._planted[record.fault] += 1

    def ledger(self) -> StreamLedger:
        """What was sent until now."""
        return StreamLedger(
            name=self._plan.name,
            plan=self._plan,
            sent_to=self._sent_to,
            records=sum(self._topics.values()),
            topics=dict(self._topics),
            planted=dict(self._planted),
        )


def write_stream_ledger(landing: Path, ledger: StreamLedger) -> Path:
    """Writes the ledger of a stream beside its topics, and removes the oldest of many; returns the file.

    Raises:
        OSError: The file cannot be written.
    """
    file = landing / LEDGERS / f"{ledger.name}.json"
    write_atomic(file, msgspec.json.format(msgspec.json.encode(ledger), indent=2) + b"\n")
    for old in sorted(file.parent.glob("*.json"))[:-MOST_LEDGERS]:
        old.unlink(missing_ok=True)
    return file


def read_stream_ledger(file: Path) -> StreamLedger:
    """The ledger in a file.

    Raises:
        InputError: The file is missing or is no ledger.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=StreamLedger)
    except OSError as error:
        raise InputError(f"cannot read ledger {file}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"{file} is not a ledger of a stream: {error}") from error
