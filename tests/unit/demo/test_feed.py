"""A stream is sent at its rate, and a demo's feed never disturbs those beside it."""

import datetime
import itertools
import json
import re
import threading
import time
from pathlib import Path
from typing import Final

import pytest

from app.demo import feed
from app.demo.event_records import IMPRESSIONS, TOPICS, USER_EVENTS, Record
from app.demo.event_stream import records
from app.demo.feed import Feed, Landing, generated_files, paced
from app.demo.ledger import LEDGERS, Ledger, Plan, read_ledger
from tests.polling import poll_until

PLAN: Final = Plan(start=datetime.datetime(2024, 1, 1, 8, tzinfo=datetime.UTC), rate=2_000)


def plan_of(ledger: Ledger) -> Plan:
    """What gives the records of a stream again."""
    assert isinstance(ledger.plan, Plan)
    return ledger.plan


def drained(folder: Path) -> list[bytes]:
    """All lines of all topics."""
    files = [file for topic in TOPICS for file in generated_files(folder / topic)]
    return [line for file in files for line in file.read_bytes().split(b"\n")[:-1]]


def test_records_are_sent_at_the_rate() -> None:
    """All of them, in order, and the last when it is due."""
    began = time.monotonic()
    groups = list(paced(PLAN, every=0.05, count=2_000))
    seconds = time.monotonic() - began
    assert [record for group in groups for record in group] == list(itertools.islice(records(PLAN), 2_000))
    assert 0.99 < seconds < 3
    assert len(groups) > 3


def test_a_stop_ends_the_stream_at_once() -> None:
    """Without waiting for the next group."""
    stop = threading.Event()
    stop.set()
    began = time.monotonic()
    assert list(paced(PLAN, every=60, stop=stop)) == []
    assert time.monotonic() - began < 10


def test_a_feed_writes_at_once_what_is_past_and_goes_on(tmp_path: Path) -> None:
    """Its history ends now; the ledger at its end counts all that is in the files, and gives it again."""
    with Feed(tmp_path, rate=50, history=600, note=pytest.fail):
        began = time.time()
        poll_until(lambda: len(drained(tmp_path)) > 30_000, "records after those of the history", pause=0.05)
    lines = drained(tmp_path)
    [file] = (tmp_path / LEDGERS).iterdir()
    ledger = read_ledger(file)
    assert ledger.rows == len(lines)
    again = itertools.islice(records(plan_of(ledger)), ledger.rows)
    assert sorted(record.value for record in again) == sorted(lines)
    newest = json.loads(generated_files(tmp_path / IMPRESSIONS)[-1].read_bytes().splitlines()[-1])["timestamp"]
    assert abs(datetime.datetime.fromisoformat(newest).timestamp() - began) < 60


def test_feeds_one_after_the_other_repeat_no_id(tmp_path: Path) -> None:
    """As when a demo is started again in the same folder."""
    for _ in range(2):
        before = len(drained(tmp_path))
        with Feed(tmp_path, rate=50, history=20, note=pytest.fail):
            poll_until(lambda before=before: len(drained(tmp_path)) > before, "records")  # type: ignore[misc]
    events = [line for file in generated_files(tmp_path / IMPRESSIONS) for line in file.read_bytes().splitlines()]
    assert len(events) > 200
    ledgers = [read_ledger(file) for file in (tmp_path / LEDGERS).iterdir()]
    assert len({ledger.plan.name for ledger in ledgers}) == 2


def test_refused_writes_are_noted_once(tmp_path: Path) -> None:
    """However many are refused; the with-statement is not left by them."""
    (tmp_path / "landing").touch()
    notes: list[str] = []
    with Feed(tmp_path / "landing", rate=100, note=notes.append):
        assert len(notes) == 1
    why = "the demo feed cannot write to .*/landing: (File exists|Not a directory); it tries again"
    assert re.fullmatch(why, "\n".join(notes))


def test_refused_records_are_written_when_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is missing, and none is there twice."""
    monkeypatch.setattr(feed, "DROP_SECONDS", 0.05)
    (tmp_path / "landing").touch()
    notes: list[str] = []
    with Feed(tmp_path / "landing", rate=100, history=10, note=notes.append):
        (tmp_path / "landing").unlink()
        poll_until(lambda: len(drained(tmp_path / "landing")) >= 1_000, "the records of the history")
    [file] = (tmp_path / "landing" / LEDGERS).iterdir()
    ledger = read_ledger(file)
    again = itertools.islice(records(plan_of(ledger)), ledger.rows)
    assert sorted(record.value for record in again) == sorted(drained(tmp_path / "landing"))


def test_a_file_of_a_feed_has_a_bounded_size(tmp_path: Path) -> None:
    """However much is due at once, so that a query can take it in batches."""
    with Feed(tmp_path, rate=100, history=300, note=pytest.fail):
        poll_until(lambda: len(drained(tmp_path)) >= 30_000, "the history")
    sizes = [len(file.read_bytes().splitlines()) for file in generated_files(tmp_path / USER_EVENTS)]
    assert max(sizes) <= feed.MAX_RECORDS
    assert len(sizes) >= 6


def sent(count: int) -> list[Record]:
    """The first records."""
    return list(itertools.islice(records(PLAN), count))


def read(folder: Path, topic: str) -> list[bytes]:
    """The lines of a topic, file by file."""
    files = generated_files(folder / topic)
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
    files, stream = Landing(tmp_path, PLAN.name), sent(300)
    files.prepare()
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
    for number in range(feed.MAX_FILES + 10):
        (folder / f"20230101T000000000-7-{number:08}.jsonl").touch()
    (folder / "mine.jsonl").touch()
    Landing(tmp_path, PLAN.name).send(sent(20))
    kept = generated_files(folder)
    assert len(kept) == feed.MAX_FILES
    assert kept[0].name == "20230101T000000000-7-00000011.jsonl"
    assert kept[-1].name == f"{PLAN.name}-00000000.jsonl"
    assert (folder / "mine.jsonl").exists()
