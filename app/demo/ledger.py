"""Ledgers of generated data: what determines it, how much there is, and how many faults of each kind were planted."""

import datetime
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from app.demo import DEMO_ROWS, DEMO_SEED, faults
from app.demo.event_records import TOPICS, Record
from app.demo.faults import PARTS
from spark_app.errors import InputError
from spark_app.local_files import write_atomic

LEDGER_NAME: Final = "_ledger.json"
"""The ledger of a source's day, beside its files, under a name that Spark ignores."""
LEDGERS: Final = "_ledgers"
"""The folder of the ledgers of streams, beside those of the topics; Spark ignores its name."""
MAX_LEDGERS: Final = 100


class Day(msgspec.Struct, frozen=True, kw_only=True, tag="day"):
    """What determines the raw files of a day.

    Attributes:
        date: The day.
        rows: Lines of transactions, which determine the number of customers.
        seed: Determines all rows. Days of the same seed and the same number of rows share their customers.
        currency: The shop's own currency.
        formats: Of each source `json`, which is the default, `csv` or `parquet`.
    """

    date: datetime.date
    rows: int = DEMO_ROWS
    seed: int = DEMO_SEED
    currency: str = "EUR"
    formats: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """The date."""
        return self.date.isoformat()

    def planted(self, source: str, shares: Mapping[str, int], base: int) -> dict[str, int]:
        """How many lines of a source have which fault: parts of 10,000 of a number, rounded so that their sums are."""
        least = 1 if self.rows >= faults.EVERY_KIND_FROM else 0
        until = [(base * share + PARTS // 2) // PARTS for share in itertools.accumulate(shares.values(), initial=0)]
        counts = [max(least, end - start) for start, end in itertools.pairwise(until)]
        impossible = faults.TEXT_ONLY if self.formats.get(source) == "parquet" else ()
        return {kind: 0 if kind in impossible else count for kind, count in zip(shares, counts, strict=True)}


class Plan(msgspec.Struct, frozen=True, kw_only=True, tag="stream"):
    """What determines every record of a stream.

    Attributes:
        start: When the first record is sent, to the millisecond; ids contain it.
        seed: What users do, and what is planted where.
        rate: Records per second.
        currency: The currency of all amounts.
        shares: Parts of 10,000 of each kind of fault; a kind that is missing is not planted.
    """

    start: datetime.datetime
    seed: int = DEMO_SEED
    rate: float = 20.0
    currency: str = "EUR"
    shares: Mapping[str, int] = msgspec.field(default_factory=lambda: faults.STREAM_SHARES)

    @property
    def name(self) -> str:
        """The start and the seed: streams of other starts or seeds share no id."""
        return f"{self.start.astimezone(datetime.UTC):%Y%m%dT%H%M%S}{self.start.microsecond // 1000:03}-{self.seed}"

    def instant_ms(self, number: int) -> int:
        """When a record is sent, in milliseconds since 1970."""
        return round(self.start.timestamp() * 1000) + int(number * 1000 / self.rate)


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What was generated and planted. The counts of a pipeline must equal it exactly; its plan generates it again.

    Attributes:
        source: `transactions`, `customers`, `refunds` or `stream`.
        plan: What determines the rows.
        rows: All lines or records, also malformed ones, without CSV headers.
        parts: The rows of a day by what becomes of them, of a stream by topic; they add up to `rows`. `valid` are
            published: one per key. `quarantined` have a fault. `duplicates` are removed: exact ones, and older versions
            of a key. Of customers each version is valid, since their history keeps it.
        planted: Rows by kind of fault, of which a row has at most one; kinds that did not occur count 0.
    """

    source: str
    plan: Day | Plan
    rows: int
    parts: dict[str, int]
    planted: dict[str, int]


class Tally:
    """Counts records of a stream as they are sent."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._topics, self._planted = Counter(dict.fromkeys(TOPICS, 0)), Counter(dict.fromkeys(plan.shares, 0))

    def add(self, records: Sequence[Record]) -> None:
        """Counts records that were sent."""
        self._topics.update(record.topic for record in records)
        self._planted.update(record.fault for record in records if record.fault is not None)

    def write(self, landing: Path) -> tuple[Ledger, Path]:
        """Writes the ledger of what was sent until now beside the topics, and removes the oldest of many.

        Raises:
            OSError: The file cannot be written.
        """
        plan, topics, planted = self._plan, dict(self._topics), dict(self._planted)
        ledger = Ledger(source="stream", plan=plan, rows=self._topics.total(), parts=topics, planted=planted)
        file = landing / LEDGERS / f"{plan.name}.json"
        write_ledger(file, ledger)
        for old in sorted(file.parent.glob("*.json"))[:-MAX_LEDGERS]:
            old.unlink(missing_ok=True)
        return ledger, file


def write_ledger(file: Path, ledger: Ledger) -> None:
    """Writes a ledger.

    Raises:
        OSError: The file cannot be written.
    """
    write_atomic(file, msgspec.json.format(msgspec.json.encode(ledger), indent=2) + b"\n")


def read_ledger(file: Path) -> Ledger:
    """The ledger in a file.

    Raises:
        InputError: The file is missing or is no ledger.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=Ledger)
    except OSError as error:
        raise InputError(f"cannot read ledger {file}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"{file} is not a ledger: {error}") from error
