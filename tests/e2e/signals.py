"""What each pipeline must show where: the one table that drives the tests of the live stack."""

from dataclasses import dataclass
from typing import Any, Final


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
COUNTED: Final = {
    "rows_read": "pipeline_rows_read_total",
    "rows_quarantined": "pipeline_rows_quarantined_total",
    "rows_duplicate": "pipeline_rows_duplicate_total",
}
"""Figures of a run's record, and the series that must have grown by them."""


@dataclass(frozen=True)
class Seen:
    """A run of the main job: the records of its pipelines, and what the series had before it."""

    runs: dict[str, dict[str, Any]]
    before: dict[tuple[str, str], float]
