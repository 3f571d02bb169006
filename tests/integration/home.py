"""A home folder of its own for a test: raw files are delivered to it, the real pipelines run on it, tables are read."""

import datetime
import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import reduce
from pathlib import Path
from typing import Any, Final

import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from app.demo import shop
from app.demo.ledger import Day, Ledger
from spark_app import testing
from spark_app.execution import pipelines
from spark_app.execution.application import Application
from spark_app.execution.run import load_jobs, run_days
from spark_app.runs.run_record import RunRecord
from spark_app.settings import config_folder, load_settings
from spark_app.warehouse.tables import Warehouse

DAY: Final = datetime.date(2024, 1, 1)


class Home:
    """A home folder with a real source, whose runs share the session of all tests."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        """Nothing is delivered yet."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.spark = folder, spark
        self.notes: list[str] = []
        self.progress: list[str] = []
        self.settings = load_settings(self._own_config())
        raw = self.settings.raw.model_copy(update={"path": "raw"})
        self.settings = self.settings.model_copy(update={"home": folder, "raw": raw})

    def made(
        self, date: datetime.date = DAY, *, rows: int, kind: str = "json", customers: str | None = None, seed: int = 3
    ) -> dict[str, Ledger]:
        """Delivers a generated day with every fault planted, and returns its ledgers.

        Args:
            date: The day.
            rows: Transactions of the day.
            kind: The file format of the transactions.
            customers: That of the customers; the same if None.
            seed: What makes the rows differ from those of other seeds.
        """
        formats = {"transactions": kind, "customers": customers or kind}
        self.reads(**formats)
        return shop.write_day(self.folder / "raw", Day(date=date, rows=rows, seed=seed, formats=formats))

    def reads(self, transactions: str, customers: str | None = None) -> None:
        """Sets the configured format of the sources; that of customers is the same if it is None."""
        formats = {"transactions": transactions, "customers": customers or transactions}
        raw = self.settings.raw.model_copy(update={"formats": formats})
        self.settings = self.settings.model_copy(update={"raw": raw})

    def day_folder(self, source: str, date: datetime.date = DAY) -> Path:
        """Where a source's files of a day belong."""
        return shop.day_folder(self.folder / "raw", source, date)

    def deliver(
        self, source: str, rows: Iterable[Mapping[str, Any]], *, date: datetime.date = DAY, name: str = "a.json"
    ) -> Path:
        """Puts rows as JSON Lines in place of the file of that name."""
        return self.deliver_text(source, "".join(json.dumps(row) + "\n" for row in rows), date=date, name=name)

    def deliver_text(self, source: str, text: str, *, date: datetime.date = DAY, name: str) -> Path:
        """Puts a file in place."""
        file = self.day_folder(source, date) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def configure(self, pipeline: str, **changes: Any) -> None:
        """Changes the config file of a pipeline; mappings are merged, and None in one removes its key."""
        path = self.settings.config / (pipeline.replace(".", "/") + ".yml")
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        for key, value in changes.items():
            content[key] = _merged(content[key], value) if isinstance(value, dict) else value
        path.write_text(yaml.safe_dump(content), encoding="utf-8")

    def forgive(self) -> None:
        """Lets days of a handful of rows pass, whatever share of them is bad."""
        self.configure("etl.customers", default_limit=1.0, limits={"duplicates": 1.0})
        self.configure("etl.daily_sales", default_limit=1.0)
        self.configure("etl.daily_sales", limits={"duplicates": 1.0, "outliers": 1.0, "freshness": 86_400})

    def run(self, *dates: datetime.date, replay: bool = False) -> list[RunRecord]:
        """Runs both pipelines, as `spark-app etl` does."""
        jobs = load_jobs(self.settings, "etl")
        with self.application("spark-app etl") as application:
            return run_days(application, jobs, dates or (DAY,), is_replay=replay)

    def application(self, name: str) -> AbstractContextManager[Application]:
        """An application of a name in the session of all tests."""
        return testing.application(self.spark, self.settings, name=name, listener=self)

    @property
    def variables(self) -> dict[str, str]:
        """What a process of the program needs to work on this home."""
        return {"SPARK_APP_HOME": str(self.folder), "SPARK_APP_RAW__PATH": "raw"}

    @property
    def tables(self) -> Path:
        """The folder in which files of tables appear."""
        return Path(self.settings.warehouse_path)

    @property
    def warehouse(self) -> Warehouse:
        """The tables of this home."""
        return Warehouse(self.spark, self.settings.warehouse_path, pipelines.declared_tables())

    def table(self, name: str) -> DataFrame:
        """A table as it is now, or the quarantine."""
        return self.warehouse.open(name)

    def rows(self, name: str, *columns: str, where: str = "true") -> list[tuple[Any, ...]]:
        """Some columns of the rows for which a condition holds, sorted."""
        return sorted(tuple(row) for row in self.table(name).where(where).selectExpr(*columns).collect())

    def content(self, *names: str) -> list[tuple[str, str]]:
        """Every row of some tables as text, sorted; of all tables unless some are named. No table has no rows."""
        parts = [
            self.table(name).select(F.lit(name).alias("table"), F.to_json(F.struct("*")).alias("row"))
            for name in self.warehouse.existing()
            if not names or name in names
        ]
        return sorted(tuple(row) for row in reduce(DataFrame.union, parts).collect()) if parts else []

    def copied(self, folder: Path) -> "Home":
        """A home folder with the same content, that goes its own way."""
        shutil.copytree(self.folder, folder)
        return Home(folder, self.spark)

    def note(self, text: str) -> None:
        """Keeps what a run tells."""
        self.notes.append(text)

    def step_started(self, pipeline: str, slice_key: str, step: str) -> None:
        """Nobody looks."""

    def step_ended(self, pipeline: str, slice_key: str, step: str, seconds: float, rows: int | None) -> None:
        """Nobody looks."""

    def step_progress(self, pipeline: str, slice_key: str, step: str, text: str) -> None:
        """Keeps how a step gets on."""
        self.progress.append(text)

    def _own_config(self) -> Path:
        own = self.folder / "config"
        if not own.exists():
            shutil.copytree(config_folder(), own)
        return own


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in (old | new).items() if value is not None}


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


EXPECTATIONS: Final = {
    "negative_amount": "amount.range",
    "unknown_status": "status.allowed",
    "unknown_segment": "segment.allowed",
    "unknown_customer": "customer_id.known",
    "other_day": "created_at.day",
    "other_currency": "currency.allowed",
    "outlier": "outliers",
}


def expectation_of(kind: str) -> str:
    """The expectation that rows with a planted fault violate."""
    for prefix, suffix in (("null_", "not_null"), ("wrong_type_", "type")):
        if kind.startswith(prefix):
            return f"{kind.removeprefix(prefix)}.{suffix}"
    return EXPECTATIONS.get(kind, kind)


def ledger_figures(ledger: Ledger) -> dict[str, int]:
    """The expected violations of a day, by expectation; an expectation that is missing here must have 0."""
    duplicates = ("exact_duplicate", "older_version")
    figures = {expectation_of(kind): count for kind, count in ledger.planted.items() if kind not in duplicates}
    return {name: count for name, count in (figures | {"duplicates": ledger.parts["duplicates"]}).items() if count}


def planted_nulls(ledger: Ledger) -> dict[str, int]:
    """How many nulls each column has that has some."""
    nulls = {kind.removeprefix("null_"): n for kind, n in ledger.planted.items() if kind.startswith("null_")}
    return {column: count for column, count in nulls.items() if count}


def assert_is_ledger(result: RunRecord, ledger: Ledger) -> None:
    """Every figure of a run is that of the ledger, and the rows add up."""
    published = {"read": ledger.rows, "published": ledger.parts["valid"]}
    assert result.counts == published | {name: ledger.parts[name] for name in ("quarantined", "duplicates")}
    assert ledger.rows == sum(ledger.parts.values())
    assert {
        figure.expectation: figure.violations for figure in result.expectations if figure.violations
    } == ledger_figures(ledger)
    nulls = {column: count for column, count in result.nulls.items() if count}
    assert nulls == planted_nulls(ledger)
