"""A project of meters and bills, whose days come in any order, late, corrected and more than once."""

import datetime
import json
import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_app import Source, daily
from spark_app.declarations.daily_pipeline import DailyPipeline
from spark_app.declarations.declaration import Declared
from spark_app.execution.application import Application, spark_identity
from spark_app.execution.run import Job, run_days, run_stale
from spark_app.settings import Raw, Settings, load_settings
from spark_app.telemetry import setup
from spark_app.testing import Silent
from spark_app.warehouse.tables import Warehouse

FIRST: Final = datetime.date(2024, 1, 1)
METERS: Final = Source(
    "meters",
    schema="meter_id string, customer string, since date, changed_at timestamp",
    key=("meter_id", "since"),
    newest="changed_at",
    may_be_empty=True,
)
READINGS: Final = Source(
    "readings",
    schema="reading_id string, meter_id string, kwh decimal(10, 2), changed_at timestamp",
    key="reading_id",
    newest="changed_at",
)


@daily.source(METERS)
def bronze_meters(rows: DataFrame) -> DataFrame:
    """Which customer has a meter since when."""
    return rows


@daily.state(
    schema="meter_id string, customer string, since date, valid_from date, valid_to date", key=("meter_id", "since")
)
def meters(meters: DataFrame, bronze_meters: DataFrame) -> DataFrame:
    """The history of the meters."""
    touched = bronze_meters.select("meter_id").distinct()
    known = meters.join(touched, "meter_id", "left_semi").select("meter_id", "customer", "since", F.lit(0).alias("n"))
    rows = known.unionByName(bronze_meters.select("meter_id", "customer", "since", F.lit(1).alias("n")))
    newest = Window.partitionBy("meter_id", "since").orderBy(F.desc("n"))
    single = rows.withColumn("rank", F.row_number().over(newest)).where("rank = 1")
    until = F.lead("since").over(Window.partitionBy("meter_id").orderBy("since"))
    return single.select("meter_id", "customer", "since", F.col("since").alias("valid_from"), until.alias("valid_to"))


@daily.source(READINGS)
def bronze_readings(rows: DataFrame) -> DataFrame:
    """Readings of a day."""
    return rows


@daily.table(schema="day date, meter_id string, kwh decimal(20, 2)", partition_by="day")
def usage(bronze_readings: DataFrame) -> DataFrame:
    """What each meter measured in a day."""
    return bronze_readings.groupBy(F.col("date").alias("day"), "meter_id").agg(F.sum("kwh").alias("kwh"))


@daily.state(schema="meter_id string, kwh decimal(38, 2), days bigint", key="meter_id")
def totals(totals: DataFrame, usage: DataFrame) -> DataFrame:
    """What each meter measured until now."""
    both = usage.select("meter_id", F.col("kwh").cast("decimal(38, 2)"), F.lit(1).cast("bigint").alias("days"))
    known = totals.join(usage.select("meter_id"), "meter_id", "left_semi")
    summed = known.unionByName(both).groupBy("meter_id").agg(F.sum("kwh").alias("kwh"), F.sum("days").alias("days"))
    return summed.select("meter_id", F.col("kwh").cast("decimal(38, 2)"), "days")


@daily.table(schema="day date, customer string, kwh decimal(38, 2)", partition_by="day")
def bills(usage: DataFrame, meters: DataFrame) -> DataFrame:
    """What each customer used in a day, by who had the meter then."""
    is_then = (usage["day"] >= meters["valid_from"]) & (
        (usage["day"] < meters["valid_to"]) | meters["valid_to"].isNull()
    )
    joined = usage.join(meters, (usage["meter_id"] == meters["meter_id"]) & is_then)
    return joined.groupBy("day", "customer").agg(F.sum("kwh").cast("decimal(38, 2)").alias("kwh"))


@daily.state(schema="customer string, kwh decimal(38, 2)", key="customer")
def month(month: DataFrame, bills: DataFrame) -> DataFrame:
    """What each customer used until now."""
    known = month.join(bills.select("customer"), "customer", "left_semi")
    rows = known.unionByName(bills.select("customer", "kwh"))
    return rows.groupBy("customer").agg(F.sum("kwh").cast("decimal(38, 2)").alias("kwh"))


@daily.table(schema="day date, customer string, part decimal(38, 2), until_now decimal(38, 2)", partition_by="day")
def parts(bills: DataFrame, month: DataFrame) -> DataFrame:
    """What a day is of the sum of all days until then."""
    return bills.join(month.select("customer", F.col("kwh").alias("until_now")), "customer").select(
        "day", "customer", F.col("kwh").alias("part"), "until_now"
    )


PIPELINES: Final[Mapping[str, Sequence[Declared]]] = {
    "etl.meters": [bronze_meters, meters],
    "etl.readings": [bronze_readings, usage, totals],
    "etl.bills": [bills, month],
    "etl.parts": [parts],
}
TABLES: Final = ("usage", "totals", "meters", "bills", "month", "parts")


def lenient(config: Any) -> Any:
    """What random rows pass: any share of duplicates."""
    return config(default_limit=1, limits=dict.fromkeys(config.expectation_names, 1))


class Project:
    """A home of the project, with its raw files and its warehouse."""

    def __init__(
        self,
        spark: SparkSession,
        home: Path,
        *,
        raw: Path | None = None,
        declared: Mapping[str, Sequence[Declared]] = PIPELINES,
    ) -> None:
        """Runs nothing yet; `ran` gets the pipeline and the day of each run, and whether it succeeded."""
        self.spark, self.home, self.raw = spark, home, raw or home / "raw"
        update = {"home": home, "raw": Raw(path=str(self.raw), formats={})}
        self.settings: Settings = load_settings().model_copy(update=update)
        pipelines = {name: DailyPipeline(name, of_pipeline) for name, of_pipeline in declared.items()}
        self.jobs = [Job(name, each, lenient(each.config)) for name, each in pipelines.items()]
        self.tables = [table for each in pipelines.values() for table in each.writes]
        self.ran = list[tuple[str, datetime.date, bool]]()

    @contextmanager
    def application(self) -> Iterator[Application]:
        """An application of the project."""
        warehouse = Warehouse(self.spark, self.settings.warehouse_path, self.tables)
        telemetry = setup.start(service_version="0", environment="test", application="tests")
        given = "tests", self.settings, self.spark, warehouse, telemetry, Silent(), self.home / "spark.jsonl"
        application = Application(secrets.token_hex(6), *given, *spark_identity(self.spark))
        try:
            yield application
        finally:
            for each in application.results:
                self.ran.append((each.pipeline, datetime.date.fromisoformat(each.slice), each.outcome == "succeeded"))
            telemetry.close()

    def deliver(self, source: str, day: datetime.date, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes a raw file; it may replace one."""
        folder = self.raw / source / f"date={day}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def withdraw(self, source: str, day: datetime.date, name: str) -> None:
        """Deletes a raw file, if it is there."""
        (self.raw / source / f"date={day}" / f"{name}.json").unlink(missing_ok=True)

    def run(self, days: Sequence[datetime.date], *names: str) -> None:
        """Runs pipelines, or all, for days."""
        jobs = [job for job in self.jobs if not names or job.name in names]
        with self.application() as application:
            run_days(application, jobs, days)

    def run_stale(self) -> int:
        """Runs what was made of what has changed since; returns how many runs that took."""
        with self.application() as application:
            run_stale(application, self.jobs)
            return len(application.results)

    def content(self) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of all tables, in an order."""
        warehouse = Warehouse(self.spark, self.settings.warehouse_path, self.tables)
        return {name: sorted((tuple(row) for row in warehouse.table(name).collect()), key=repr) for name in TABLES}


def readings(random: random.Random, day: datetime.date, *, file: str) -> list[dict[str, Any]]:
    """Some readings of some meters, with ids of their file."""
    return [
        {
            "reading_id": f"{day}-{file}-{number}",
            "meter_id": f"m{random.randrange(4)}",
            "kwh": f"{random.randrange(1, 1000) / 100:.2f}",
            "changed_at": f"{day}T10:00:00Z",
        }
        for number in range(random.randrange(1, 6))
    ]


def changes(random: random.Random, day: datetime.date, days: Sequence[datetime.date]) -> list[dict[str, Any]]:
    """What a day says of meters: most of it of this day, some of days before."""
    return [
        {
            "meter_id": f"m{random.randrange(4)}",
            "customer": f"c{random.randrange(3)}",
            "since": str(day if random.random() < 0.7 else random.choice(days)),
            "changed_at": f"{day}T10:00:{number:02}Z",
        }
        for number in range(random.randrange(4))
    ]
