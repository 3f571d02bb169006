"""The signals that each pipeline must leave in each back end: the table that drives the tests of the live stack."""

from dataclasses import dataclass
from typing import Any, Final

from spark_app.vocabulary import names


@dataclass(frozen=True)
class Signals:
    """The signals that a successful run of one pipeline leaves in the back ends.

    Attributes:
        pipeline: Its name.
        steps: The names of its step spans, in order.
        tables: The tables that it writes.
        log_services: The services that write log lines with its trace id.
    """

    pipeline: str
    steps: tuple[str, ...]
    tables: tuple[str, ...]
    log_services: tuple[str, ...] = ("spark-app", "spark-executor")


SIGNALS: Final = (
    Signals(
        "etl.customers",
        (
            "read customers",
            "transform customers",
            "write bronze_customers",
            "audit bronze_customers",
            "publish customers",
        ),
        ("bronze_customers", "customers"),
    ),
    Signals(
        "etl.daily_sales",
        (
            "read transactions",
            "transform transactions",
            "write bronze",
            "audit bronze",
            "write transactions",
            "publish daily_sales",
        ),
        ("bronze", "transactions", "daily_sales"),
    ),
)
COUNTED: Final = {"read": names.READ, "quarantined": names.QUARANTINED, "duplicates": names.DUPLICATE}
"""Counts of a run record, and the metrics that must grow by them."""
Figure = tuple[str, str]
"""The name of a figure of a run record, and a pipeline."""


@dataclass(frozen=True)
class Day:
    """One undisturbed run of the daily job.

    Attributes:
        runs: The records of its pipelines, by their names.
        grown: The growth of the series of each figure of each pipeline.
        seconds_to_end: How long its command took to end after the last record was written.
        began: When it began, a Unix time.
    """

    runs: dict[str, dict[str, Any]]
    grown: dict[Figure, float]
    seconds_to_end: float
    began: float


@dataclass(frozen=True)
class Together:
    """Two daily jobs at once beside a notebook, while the bridge is killed in the midst of the first.

    Attributes:
        runs: The records of their runs.
        archived: The main classes of the Javas that map the class-data archive, by container.
    """

    runs: list[dict[str, Any]]
    archived: dict[str, list[str]]


@dataclass(frozen=True)
class Planted:
    """All incidents, planted one after the other.

    Attributes:
        documents: What the command says of each in its JSON document, by its name.
        alerts: The annotations of the alerts that reached the webhook, by their names.
    """

    documents: dict[str, dict[str, Any]]
    alerts: dict[str, dict[str, str]]


@dataclass(frozen=True)
class Harmed:
    """A daily job that lost a worker and all three stores on its way, and one that had no input.

    Attributes:
        runs: The records of the job that lost a worker.
        grown: The growth of the series of each figure of each pipeline.
        alerts: The annotations of the alerts that reached the webhook, by their names.
    """

    runs: list[dict[str, Any]]
    grown: dict[Figure, float]
    alerts: dict[str, dict[str, str]]


@dataclass(frozen=True)
class Streams:
    """All streaming queries, run on records of the demo shop; in the midst they hung for some minutes.

    Attributes:
        runs: The records of their runs, by their names.
        began: When they began, a Unix time.
    """

    runs: dict[str, dict[str, Any]]
    began: float


@dataclass(frozen=True)
class Learned:
    """A model of refunds that was trained and promoted, and a day that it scored.

    Attributes:
        trained: The record of the run that trained it.
        card: What that run says of the model.
        scored: The record of the run that scored the day.
        began: When training began, a Unix time.
    """

    trained: dict[str, Any]
    card: dict[str, Any]
    scored: dict[str, Any]
    began: float
