"""Generates a day of the demo shop when a run finds no raw data, and its refunds when a model needs them."""

import datetime
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from app.errors import InputError, UsageError
from app.samples import DEMO_ROWS, DEMO_SEED, refunds, shop
from app.samples.ledger import read_ledger
from app.settings import Settings
from app.warehouse import raw_files


def make_if_missing(
    spark: SparkSession, settings: Settings, date: datetime.date, *, note: Callable[[str], None]
) -> None:
    """Generates a day if a source has no files, and notes it; existing files are never replaced.

    Raises:
        InputError: A source has no files, and the folder of the day holds files that must not be replaced.
    """
    days = [raw_files.day_folder(settings.raw_path, source, date) for source in shop.SOURCES]
    missing = [day for day in days if not raw_files.has_files(spark, day)]
    if not missing:
        return
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
        raise InputError(f"no raw data in {' and '.join(missing)}, and it cannot be generated: {error}") from error
    note(
        f"no raw data for {date}: generated {DEMO_ROWS:,} demo transactions in {settings.raw_path} "
        "(set raw.path in config/app.yml to read your own data)"
    )


def make_refunds_if_missing(spark: SparkSession, settings: Settings, date: datetime.date) -> None:
    """Generates the refunds that become known on a generated day, unless there are some.

    Raises:
        InputError: The day was not generated, so nobody knows what was refunded.
    """
    if raw_files.has_files(spark, raw_files.day_folder(settings.raw_path, refunds.SOURCE, date)):
        return
    folder = Path(settings.raw_path)
    day = read_ledger(shop.day_folder(folder, "transactions", date))
    formats, currency = settings.raw.formats, settings.currency
    refunds.write_refunds(folder, date=date, rows=day.rows, seed=day.seed, formats=formats, currency=currency)
