"""A home folder of its own for a test: raw files are delivered to it, the real pipelines run on it, tables are read."""

import datetime
import json
import secrets
import shutil
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any, Final

import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from app import tables
from app.records import RunRecord
from app.runner import Invocation, application, load_pipelines, run_on
from app.samples import shop
from app.samples.ledger import Ledger
from app.settings import Source, config_folder, load_settings
from app.telemetry import setup

DAY: Final = datetime.date(2024, 1, 1)


class Home:
    """A home folder with a real source, whose runs share the session of all tests."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        """Nothing is delivered yet."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.spark = folder, spark
        self.notes: list[str] = []
        self.settings = load_settings(self._own_config())
        raw = self.settings.raw.model_copy(update={"path": "raw"})
        self.settings = self.settings.model_copy(update={"home": folder, "raw": raw})

    def made(self, date: datetime.date = DAY, *, rows: int, kind: str = "json", seed: int = 3) -> dict[str, Ledger]:
        """Delivers a made day with every fault planted; gives the ledgers."""
        self.reads("csv" if kind == "csv" else "parquet" if kind == "parquet" else "json")
        formats = {"transactions": kind, "customers": kind}
        return shop.write_day(self.folder / "raw", date=date, rows=rows, seed=seed, formats=formats)

    def reads(self, kind: str) -> None:
        """Sets the configured format of both sources."""
        raw = self.settings.raw.model_copy(update={"transactions": kind, "customers": kind})
        self.settings = self.settings.model_copy(update={"raw": raw})

    def day_folder(self, source: Source, date: datetime.date = DAY) -> Path:
        """Where a source's files of a day belong."""
        return shop.day_folder(self.folder / "raw", source, date)

    def deliver(
        self, source: Source, rows: Iterable[Mapping[str, Any]], *, date: datetime.date = DAY, name: str = "a.json"
    ) -> Path:
        """Puts rows as JSON Lines in place of the file of that name."""
        return self.deliver_text(source, "".join(json.dumps(row) + "\n" for row in rows), date=date, name=name)

    def deliver_text(self, source: Source, text: str, *, date: datetime.date = DAY, name: str) -> Path:
        """Puts a file in place."""
        file = self.day_folder(source, date) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def configure(self, pipeline: str, **changes: Any) -> None:
        """Changes the config file of a pipeline; mappings are merged."""
        path = self.settings.config / (pipeline.replace(".", "/") + ".yml")
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        for key, value in changes.items():
            content[key] = content[key] | value if isinstance(value, dict) else value
        path.write_text(yaml.safe_dump(content), encoding="utf-8")

    def forgive(self) -> None:
        """Lets days of a handful of rows pass, whatever share of them is bad."""
        self.configure("etl.customers", default_limit=1.0, limits={"duplicates": 1.0})
        self.configure("etl.daily_sales", default_limit=1.0)
        self.configure("etl.daily_sales", limits={"duplicates": 1.0, "outliers": 1.0, "freshness": 86_400})

    def run(self, *dates: datetime.date, replay: bool = False) -> list[RunRecord]:
        """Runs both pipelines, as `spark-app etl` does."""
        pipelines, spark = load_pipelines(self.settings), self.spark
        telemetry = setup.start(service_version="0", environment="test", application="spark-app etl")
        log_file = self.folder / "logs" / "spark.jsonl"
        known = (log_file, replay, *application(spark), pipelines)
        invocation = Invocation(secrets.token_hex(6), self.settings, spark, telemetry, self, *known)
        try:
            return run_on(invocation, dates or (DAY,))
        finally:
            telemetry.close()

    def table(self, name: str) -> DataFrame:
        """A table as it is now, or the quarantine."""
        return tables.open_table(self.spark, self.settings, name)

    def rows(self, name: str, *columns: str, where: str = "true") -> list[tuple[Any, ...]]:
        """Some columns of the rows for which a condition holds, sorted."""
        return sorted(tuple(row) for row in self.table(name).where(where).selectExpr(*columns).collect())

    def content(self, *names: str) -> list[tuple[str, str]]:
        """Every row of some tables as text, sorted; of all tables unless some are named. No table has no rows."""
        parts = [
            self.table(name).select(F.lit(name).alias("table"), F.to_json(F.struct("*")).alias("row"))
            for name in names or tuple(tables.TABLES)
            if tables.exists(self.spark, tables.path_of(self.settings, name))
        ]
        return sorted(tuple(row) for row in reduce(DataFrame.union, parts).collect()) if parts else []

    def savepoints(self) -> list[str]:
        """Notes of runs that wait for a rerun; a kill may leave a checksum of Hadoop's, which is hidden."""
        return sorted(path.name for path in Path(self.settings.warehouse_path, "_savepoints").glob("[!.]*.json*"))

    def copied(self, folder: Path) -> "Home":
        """A home folder with the same content, that goes its own way."""
        shutil.copytree(self.folder, folder)
        return Home(folder, self.spark)

    def note(self, text: str) -> None:
        """Keeps what a run tells."""
        self.notes.append(text)

    def step_started(self, pipeline: str, date: datetime.date, step: str) -> None:
        """Nobody looks."""

    def step_ended(self, pipeline: str, date: datetime.date, step: str, seconds: float, rows: int | None) -> None:
        """Nobody looks."""

    def _own_config(self) -> Path:
        own = self.folder / "config"
        if not own.exists():
            shutil.copytree(config_folder(), own)
        return own


def sale(number: int, **changes: Any) -> dict[str, Any]:
    """A transaction without a fault, of customer 1 on the morning of the day, but for the changes."""
    return {
        "transaction_id": f"t-20240101-{number:07}",
        "customer_id": "c-0000001",
        "product_id": "p-00001",
        "category": "books",
        "quantity": 1,
        "amount": "10.00",
        "currency": "EUR",
        "status": "completed",
        "payment_method": "card",
        "channel": "web",
        "country": "DE",
        "created_at": "2024-01-01T08:00:00.000000Z",
        "updated_at": "2024-01-01T08:00:00.000000Z",
    } | changes


def customer(number: int, **changes: Any) -> dict[str, Any]:
    """A customer without a fault who signed up long ago, but for the changes."""
    return {
        "customer_id": f"c-{number:07}",
        "segment": "consumer",
        "country": "DE",
        "signed_up_at": "2020-01-01T00:00:00.000000Z",
        "updated_at": "2023-01-01T00:00:00.000000Z",
    } | changes


def ledger_figures(ledger: Ledger) -> dict[str, int]:
    """What the figures of a day must be, by the names of their promises; a promise that is not here must be 0."""
    figures = {
        "malformed": ledger.malformed,
        "amount.range": ledger.negative_amounts,
        "status.allowed": ledger.unknown_status,
        "segment.allowed": ledger.unknown_segment,
        "customer_id.known": ledger.unknown_customer,
        "created_at.day": ledger.other_day,
        "currency.allowed": ledger.other_currency,
        "duplicates": ledger.duplicates,
        "outliers": ledger.outliers,
    }
    figures |= {f"{column}.not_null": count for column, count in ledger.nulls.items()}
    figures |= {f"{column}.type": count for column, count in ledger.wrong_type.items()}
    return {name: count for name, count in figures.items() if count}


def assert_is_ledger(result: RunRecord, ledger: Ledger) -> None:
    """Every figure of a run is that of the ledger, and the rows add up."""
    told = (result.rows_read, result.rows_written, result.rows_quarantined, result.rows_duplicate)
    assert told == (ledger.rows, ledger.valid, ledger.quarantined, ledger.duplicates)
    assert ledger.rows == ledger.valid + ledger.quarantined + ledger.duplicates
    assert {figure.promise: figure.broken for figure in result.figures if figure.broken} == ledger_figures(ledger)
    nulls = {column: count for column, count in result.nulls.items() if count}
    assert nulls == {column: count for column, count in ledger.nulls.items() if count}
