"""What `spark-app` uses of the demo shop: see `spark_app.execution.demo`."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

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

    What is there determines the rest: its seed, and how many rows it has.

    Raises:
        InputError: A source has no files, and the folder of the day holds files that must not be replaced.
    """
    from app.demo import shop
    from app.demo.ledger import LEDGER_NAME, Day, read_ledger
    from spark_app.errors import InputError, UsageError
    from spark_app.warehouse.source_files import origin

    known = [origin(settings, source) for source in sources if source in shop.SOURCES]
    missing = [files.where(date) for files in known if not files.is_delivered(spark, date)]
    if not missing:
        return
    folder = Path(settings.raw_path)
    files = [shop.day_folder(folder, source, date) / LEDGER_NAME for source in shop.SOURCES]
    plans = [read_ledger(file).plan for file in files if file.exists()]
    formats, currency = settings.raw.formats, settings.currency
    like = next((plan for plan in plans if isinstance(plan, Day)), Day(date=date))
    day = Day(date=date, rows=like.rows, seed=like.seed, currency=currency, formats=formats)
    try:
        shop.write_day(folder, day, replace=False)
    except UsageError as error:
        raise InputError(f"no raw data in {' and '.join(missing)}, and it cannot be generated: {error}") from error
    note(
        f"no raw data for {date}: generated {day.rows:,} demo transactions in {settings.raw_path} "
        "(set raw.path in config/app.yml to read your own data)"
    )


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
