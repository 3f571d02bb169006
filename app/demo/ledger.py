"""Ledgers of generated data: what determines it, how much there is, and how many faults of each kind were planted."""

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from app.demo import DEMO_ROWS, DEMO_SEED, faults
from app.demo.event_records import TOPICS, Record
from spark_app.errors import InputError
from spark_app.local_files import write_atomic

LEDGER_NAME: Final = "_ledger.json"
"""The ledger of a source's day, beside its files, under a name that Spark ignores."""
LEDGERS: Final = "_ledgers"
"""The folder of the ledgers of streams, beside those of the topics; Spark ignores its name."""
MOST_LEDGERS: Final = 100


class Day(msgspec.Struct, frozen=True, kw_only=True):
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

    def planted(self, source: str, shares: Mapping[str, int], base: int) -> dict[str, int]:
        """How many lines of a source have which fault."""
        is_text = self.formats.get(source) != "parquet"
        return faults.planted(shares, base=base, rows=self.rows, is_text=is_text)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
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
    """Row and fault counts of one source on one day; the counts of the pipeline must equal them exactly.

    A row has at most one fault, so `rows == valid + quarantined + duplicates`.

    Attributes:
        source: `transactions`, `customers` or `refunds`.
        day: What determines the rows.
        rows: All lines, with malformed ones, without CSV headers.
        valid: Rows to be published, with outliers: one per key; for customers one per key and `updated_at`.
        quarantined: Rows with a fault that quarantines them.
        duplicates: Valid rows to be removed: exact duplicates, and older versions of a key. The history of customers
            keeps older versions, so there they are `valid`.
        planted: Lines by kind of fault; kinds that the source can have are listed even if they count 0.
    """

    source: str
    day: Day
    rows: int
    valid: int
    quarantined: int
    duplicates: int
    planted: dict[str, int]


def ledger_of(day: Day, source: str, rows: int, planted: dict[str, int], *, keeps_versions: bool = False) -> Ledger:
    """The ledger of so many rows, of which some have a fault."""
    quarantined = sum(count for kind, count in planted.items() if kind not in faults.VALID)
    removed = ("exact_duplicate",) if keeps_versions else ("exact_duplicate", "older_version")
    duplicates = sum(planted.get(kind, 0) for kind in removed)
    valid = rows - quarantined - duplicates
    return Ledger(
        source=source, day=day, rows=rows, valid=valid, quarantined=quarantined, duplicates=duplicates, planted=planted
    )


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
        self._topics, self._planted = Counter(dict.fromkeys(TOPICS, 0)), Counter(dict.fromkeys(plan.shares, 0))

    def add(self, records: Sequence[Record]) -> None:
        """Counts records that were sent."""
        self._topics.update(record.topic for record in records)
        self._planted.update(record.fault for record in records if record.fault is not None)

    def write(self, landing: Path) -> tuple[StreamLedger, Path]:
        """Writes what was sent until now beside the topics, and removes the oldest of many ledgers.

        Raises:
            OSError: The file cannot be written.
        """
        plan, topics = self._plan, dict(self._topics)
        ledger = StreamLedger(
            name=plan.name, plan=plan, sent_to=self._sent_to, records=sum(topics.values()), topics=topics,
            planted=dict(self._planted),
        )  # fmt: skip
        file = landing / LEDGERS / f"{ledger.name}.json"
        write_ledger(file, ledger)
        for old in sorted(file.parent.glob("*.json"))[:-MOST_LEDGERS]:
            old.unlink(missing_ok=True)
        return ledger, file


AnyLedger = TypeVar("AnyLedger", bound=msgspec.Struct)


def write_ledger(file: Path, ledger: msgspec.Struct) -> None:
    """Writes a ledger.

    Raises:
        OSError: The file cannot be written.
    """
    write_atomic(file, msgspec.json.format(msgspec.json.encode(ledger), indent=2) + b"\n")


def read_ledger(file: Path, kind: type[AnyLedger]) -> AnyLedger:
    """The ledger in a file.

    Raises:
        InputError: The file is missing or is no ledger.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except OSError as error:
        raise InputError(f"cannot read ledger {file}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"{file} is not a ledger: {error}") from error
