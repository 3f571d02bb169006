"""Days of the demo shop, made where a run finds none."""

import datetime
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from app import sources
from app.errors import InputError, UsageError
from app.samples import DEMO_ROWS, DEMO_SEED, shop
from app.settings import Settings


def make_if_missing(
    spark: SparkSession, settings: Settings, date: datetime.date, *, note: Callable[[str], None]
) -> None:
    """Makes a day if a source has no files, and says so; what is there is never replaced.

    Raises:
        InputError: A source has no files, and what is there is somebody's, or of another making.
    """
    days = [sources.day_folder(settings.raw_path, source, date) for source in shop.SOURCES]
    missing = [day for day in days if not sources.has_files(spark, day)]
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
        raise InputError(f"no raw data at {' and '.join(missing)}, and none can be made: {error}") from error
    note(
        f"no raw data for {date}: made {DEMO_ROWS:,} demo transactions in {settings.raw_path} "
        "(set raw.path in config/app.yml to read your own)"
    )
