"""The notebooks that need no stack."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

STREAMING: Final = Path(__file__).resolve().parents[2] / "notebooks" / "streaming.ipynb"


def cells() -> list[str]:
    """The code of the notebook, cell by cell."""
    notebook = json.loads(STREAMING.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.fixture
def own_settings(spark: SparkSession) -> Iterator[None]:
    """What the builder of a notebook sets in the session that all tests share is set back."""
    before = spark.conf.getAll
    yield
    after = spark.conf.getAll
    for key in after.keys() - before.keys():
        spark.conf.unset(key)
    for key, value in before.items():
        if after.get(key) != value:
            spark.conf.set(key, value)


@pytest.mark.usefixtures("own_settings")
def test_the_streaming_notebook_runs_on_embedded_spark(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cell by cell, with the results that its texts speak of; no query goes on after the end."""
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path))
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        for cell in cells():
            exec(compile(cell, STREAMING.name, "exec"), names)
        assert spark.streams.active == []
    finally:
        for query in spark.streams.active:
            query.stop()
    said = capsys.readouterr().out
    for words in (
        "append []",
        "update [('purchase', 1), ('view', 2)]",
        "1 row came too late",
        "StreamingQueryException True",
    ):
        assert words in said
