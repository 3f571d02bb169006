"""What each pipeline must show where: the one table that drives the tests of the live stack."""

from dataclasses import dataclass
from typing import Any, Final

from app.telemetry import names


@dataclass(frozen=True)
class Signals:
    """What a good run of one pipeline leaves in the back ends.

    Attributes:
        pipeline: Its name.
        steps: The names of its step spans, in order.
        tables: The tables that it writes.
        log_services: Who writes log lines with its trace id.
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
            "transform versions",
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
            "write transactions",
            "publish daily_sales",
        ),
        ("bronze", "transactions", "daily_sales"),
    ),
)
COUNTED: Final = {"rows_read": names.READ, "rows_quarantined": names.QUARANTINED, "rows_duplicate": names.DUPLICATE}
"""Figures of a run's record, and the metrics that must have grown by them."""
Figure = tuple[str, str]
"""The name of a figure of a run's record, and a pipeline."""


@dataclass(frozen=True)
class Seen:
    """A run of the main job.

    Attributes:
        runs: The records of its pipelines, by their names.
        grown: What the series of each figure of each pipeline grew by.
        seconds_to_end: How long its command took to end after the last record was written.
    """

    runs: dict[str, dict[str, Any]]
    grown: dict[Figure, float]
    seconds_to_end: float


@dataclass(frozen=True)
class Harmed:
    """What happened when a worker was killed in the midst of a run, and another run had no input.

    Attributes:
        runs: The records of the run that lost a worker.
        alerts: The annotations of the alerts that reached the webhook, by their names.
    """

    runs: list[dict[str, Any]]
    alerts: dict[str, dict[str, str]]
