import os
from pathlib import Path

import pytest

from spark_app.engine import topic_writer


def test_an_outgoing_topic_of_the_demo_keeps_its_newest_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the time they were written, whatever their names: a query that starts over has another id."""
    monkeypatch.setattr(topic_writer, "MAX_FILES", 2)
    for age, name in enumerate(["b-00000002", "a-00000001", "c-00000003", "c-00000002"]):
        for file in (tmp_path / f"{name}.jsonl", tmp_path / f".{name}.jsonl.crc"):
            file.touch()
            os.utime(file, (1000 - age, 1000 - age))
    for _ in range(2):
        topic_writer.delete_oldest(tmp_path)
        left = {file.name for file in tmp_path.iterdir()}
        assert left == {"b-00000002.jsonl", ".b-00000002.jsonl.crc", "a-00000001.jsonl", ".a-00000001.jsonl.crc"}
