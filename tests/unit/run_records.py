"""Records of runs, as tests need them."""

import datetime
from pathlib import Path
from typing import Any

from spark_app.runs.run_record import RunRecord


def example_record(folder: Path = Path("/runs/r1"), **changes: Any) -> RunRecord:
    """The record of a run of customers that went well, but for the changes."""
    fields: dict[str, Any] = {
        "run_id": folder.name,
        "invocation_id": "0123456789ab",
        "pipeline": "etl.customers",
        "slice": "2024-01-01",
        "outcome": "succeeded",
        "started_at": datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
        "seconds": 1.24,
        "counts": {"read": 12_345, "published": 12_000, "quarantined": 300, "duplicates": 45},
        "tables": {"customers": "s3a://shop/customers"},
        "folder": folder,
        "trace_id": "0" * 32,
        "application_id": "local-1",
        "event_log": "file:/events",
        "spark_log": "/logs/spark.jsonl",
    }
    return RunRecord(**(fields | changes))
