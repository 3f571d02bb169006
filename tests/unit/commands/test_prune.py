import json
import os
from pathlib import Path

import pytest

from spark_app.__main__ import run
from tests.unit.eventlog.logs import program, write


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An event log of 1970."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    written = write(tmp_path / "spark-events" / "app-1", program())
    os.utime(written, (0, 0))
    return written


def test_a_dry_run_lists_what_would_be_deleted(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason; then the same is deleted, and then nothing is left to delete."""
    for words, shown, is_left in (
        (["--dry-run"], ("1970-01-01T00:00:00Z", "older than 30 days", "would delete 1 event log"), True),
        ([], ("deleted 1 event log",), False),
        ([], ("nothing to delete",), False),
    ):
        assert run(["prune", *words]) == 0
        out = capsys.readouterr().out
        assert [text for text in shown if text not in out] == []
        assert log.exists() == is_left


def test_the_document_has_what_was_deleted(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And whether it was."""
    size = log.stat().st_size
    assert run(["prune", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["dry_run"] is False
    assert document["deleted"] == [
        {
            "kind": "event log",
            "path": str(log),
            "bytes": size,
            "modified": "1970-01-01T00:00:00Z",
            "reason": "older than 30 days",
        }
    ]


def test_the_retention_is_configured(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also by the environment; null is no limit."""
    monkeypatch.setenv("SPARK_APP_RETENTION__DAYS", "null")
    assert run(["prune"]) == 0
    assert log.exists()
    monkeypatch.setenv("SPARK_APP_RETENTION__GIGABYTES", "0.0000001")
    assert run(["prune"]) == 0
    assert not log.exists()
    monkeypatch.setenv("SPARK_APP_RETENTION__DAYS", "0")
    assert run(["prune"]) == 2
    assert "SPARK_APP_RETENTION__DAYS" in capsys.readouterr().err
