import json
from pathlib import Path

import pytest

from spark_app.errors import InputError
from spark_app.quality.results import FRESHNESS, ExpectationResult
from spark_app.runs import run_record
from spark_app.runs.run_record import RECORD
from tests.unit.run_records import example_record


def test_a_record_reads_as_it_was_written(tmp_path: Path) -> None:
    """Whatever it holds."""
    written = example_record(
        tmp_path,
        counts={"read": 7},
        expectations=[ExpectationResult(FRESHNESS, 9.0, 8.0)],
        nulls={"amount": 2},
        facts={"mean": 1.5},
    )
    run_record.write(written, note=pytest.fail)
    assert run_record.read(tmp_path) == written


def test_what_is_no_record_is_told_by_its_path(tmp_path: Path) -> None:
    """None at all, and one that is torn."""
    with pytest.raises(InputError, match="cannot read the run record"):
        run_record.read(tmp_path)
    (tmp_path / RECORD).write_text('{"run_id":', encoding="utf-8")
    with pytest.raises(InputError, match=r"run\.json is not a run record"):
        run_record.read(tmp_path)


def test_a_record_of_an_older_version_is_read(tmp_path: Path) -> None:
    """What it does not hold is unknown; what this version does not know is left out."""
    saved = {
        "run_id": "r-1",
        "pipeline": "etl.x",
        "date": "2024-01-01",
        "outcome": "succeeded",
        "seconds": 1,
        "then": 0,
    }
    saved |= {
        "started_at": "2024-01-02T00:00:00Z",
        "expectations": [{"expectation": "a", "value": 0.1, "limit": None}],
    }
    (tmp_path / RECORD).write_text(json.dumps(saved), encoding="utf-8")
    record = run_record.read(tmp_path)
    assert (record.counts, record.event_log, record.application_id, record.tables) == ({}, None, None, {})
    assert record.expectations == [ExpectationResult("a", 0.1, None)]
