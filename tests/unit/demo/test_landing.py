"""Files of a stream appear whole, in the order of their records, and do not pile up."""

import datetime
import itertools
import threading
from pathlib import Path
from typing import Final

import pytest

from app.demo import landing
from app.demo.event_records import TOPICS, Record
from app.demo.event_stream import records
from app.demo.landing import Landing
from app.demo.ledger import Plan

PLAN: Final = Plan(start=datetime.datetime(2024, 1, 1, 8, tzinfo=datetime.UTC), rate=20)


def sent(count: int) -> list[Record]:
    """The first records."""
    return list(itertools.islice(records(PLAN), count))


def read(folder: Path, topic: str) -> list[bytes]:
    """The lines of a topic, file by file."""
    files = landing.generated_files(folder / topic)
    return [line for file in files for line in file.read_bytes().split(b"\n")[:-1]]


def test_a_file_has_a_record_a_line(tmp_path: Path) -> None:
    """In their order, whatever bytes they are made of."""
    files, stream = Landing(tmp_path, PLAN.name), sent(9_000)
    for start in range(0, 9_000, 1_000):
        files.send(stream[start : start + 1_000])
    for topic in TOPICS:
        assert read(tmp_path, topic) == [record.value for record in stream if record.topic == topic]


def test_a_file_appears_whole(tmp_path: Path) -> None:
    """Whoever lists the folder at any moment sees no file that is cut or grows later."""
    files, stream, is_done = Landing(tmp_path, PLAN.name), sent(3_000), threading.Event()
    sizes: dict[Path, int] = {}

    def watch() -> None:
        while not is_done.is_set():
            for file in tmp_path.glob("*/*.jsonl"):
                content = file.read_bytes()
                assert content.endswith(b"\n")
                assert sizes.setdefault(file, len(content)) == len(content)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for start in range(0, 3_000, 30):
        files.send(stream[start : start + 30])
    is_done.set()
    watcher.join()
    assert sizes


def test_a_refused_write_can_be_repeated(tmp_path: Path) -> None:
    """No record is lost and none is written twice, whichever topic was refused."""
    landing.prepare(tmp_path)
    files, stream = Landing(tmp_path, PLAN.name), sent(300)
    (tmp_path / "clicks").rmdir()
    (tmp_path / "clicks").touch()
    with pytest.raises(OSError, match="File exists"):
        files.send(stream)
    before = {file: file.stat().st_ino for file in tmp_path.glob("*/*.jsonl")}
    (tmp_path / "clicks").unlink()
    files.send(stream)
    assert before
    assert {file: file.stat().st_ino for file in before} == before
    files.send(stream[:10])
    for topic in TOPICS:
        expected = [record.value for record in [*stream, *stream[:10]] if record.topic == topic]
        assert read(tmp_path, topic) == expected


def test_the_newest_generated_files_are_kept_and_others_never_touched(tmp_path: Path) -> None:
    """Those of earlier streams go first; files of other origin stay."""
    folder = tmp_path / "impressions"
    folder.mkdir()
    for number in range(landing.MOST_FILES + 10):
        (folder / f"20230101T000000000-7-{number:08}.jsonl").touch()
    (folder / "mine.jsonl").touch()
    Landing(tmp_path, PLAN.name).send(sent(20))
    kept = landing.generated_files(folder)
    assert len(kept) == landing.MOST_FILES
    assert kept[0].name == "20230101T000000000-7-00000011.jsonl"
    assert kept[-1].name == f"{PLAN.name}-00000000.jsonl"
    assert (folder / "mine.jsonl").exists()
