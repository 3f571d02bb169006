"""What `spark-app` uses of the demo shop: see `spark_app.execution.demo`."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.demo import DEMO_ROWS, DEMO_SEED
from app.demo.data import data
from app.demo.data_stream import data_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_app.settings import Settings

COMMANDS: Final[Mapping[str, tuple[Callable[..., None], str]]] = {
    "data": (data, "etl"),
    "data stream": (data_stream, "streaming"),
}
FIRST_HISTORY_SECONDS: Final = 2400.0
"""How far back the first records of a demo go, so that the first windows close at once."""


def make_if_missing(
    spark: "SparkSession",
    settings: "Settings",
    sources: Sequence[str],
    date: datetime.date,
    *,
    note: Callable[[str], None],
) -> None:
    """Generates a day if a part of it has no files, and notes it; existing files are never replaced.

    Its refunds, which depend on the sales of days before, are generated for who reads them.

    Raises:
        InputError: A source has no files, and the folder of the day holds files that must not be replaced; or nobody
            knows what was refunded, since the day was not generated.
    """
    from app.demo import refunds, shop
    from spark_app.warehouse import raw_files

    def is_missing(source: str) -> bool:
        return not raw_files.has_files(spark, raw_files.day_folder(settings.raw_path, source, date))

    missing = [source for source in shop.SOURCES if is_missing(source)]
    if missing:
        _make_day(settings, date, missing)
        note(
            f"no raw data for {date}: generated {DEMO_ROWS:,} demo transactions in {settings.raw_path} "
            "(set raw.path in config/app.yml to read your own data)"
        )
    if refunds.SOURCE in sources and is_missing(refunds.SOURCE):
        _make_refunds(settings, date)


def _make_day(settings: "Settings", date: datetime.date, missing: Sequence[str]) -> None:
    from app.demo import shop
    from spark_app.errors import InputError, UsageError
    from spark_app.warehouse import raw_files

    try:
        shop.write_day(
            Path(settings.raw_path),
            date=date,
            rows=DEMO_ROWS,
            seed=DEMO_SEED,
            formats=settings.raw.formats,
            currency=settings.currency,
            replace=False,
        )
    except UsageError as error:
        folders = " and ".join(raw_files.day_folder(settings.raw_path, source, date) for source in missing)
        raise InputError(f"no raw data in {folders}, and it cannot be generated: {error}") from error


def _make_refunds(settings: "Settings", date: datetime.date) -> None:
    from app.demo import refunds, shop
    from app.demo.ledger import read_ledger

    folder = Path(settings.raw_path)
    day = read_ledger(shop.day_folder(folder, "transactions", date))
    formats, currency = settings.raw.formats, settings.currency
    refunds.write_refunds(folder, date=date, rows=day.rows, seed=day.seed, formats=formats, currency=currency)


def feed(settings: "Settings", *, note: Callable[[str], None]) -> AbstractContextManager[object]:
    """Generates records of all topics in the landing folder; the first time with those of the last 40 minutes."""
    from app.demo.feed import DEMO_RATE, Feed

    folder = Path(settings.landing_path)
    is_first = not any(folder.glob("*/*.jsonl"))
    note(
        f"no source is configured: generating {DEMO_RATE:.0f} demo records/s in {folder} "
        "(set stream.landing or kafka.servers in config/app.yml to read your own data)"
    )
    history = FIRST_HISTORY_SECONDS if is_first else 0
    return Feed(folder, history=history, currency=settings.currency, note=note)
