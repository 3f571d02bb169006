"""A bridge tells of every log of a folder once, whatever becomes of the logs, of the collector and of itself."""

import dataclasses
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import zstandard

from spark_app.eventlog.bridge.bridge import Options
from spark_app.eventlog.bridge.log_processor import LogProcessor
from spark_app.eventlog.bridge.metrics import Aggregate
from spark_app.eventlog.parse.log_files import EventLog
from tests.unit.eventlog.log import Line, job, stage, started, task
from tests.unit.eventlog.logs import OPTIONS, Bridged, Collector, program, tasks_of, text, write

SOON = dataclasses.replace(OPTIONS, dead_after=0)
Start = Callable[..., Bridged]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder of logs."""
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts a bridge that is ended with the test."""
    with ExitStack() as stack:

        def begin(options: Options = OPTIONS, collector: Collector | None = None) -> Bridged:
            bridged = Bridged(folder, options=options, collector=collector)
            stack.callback(bridged.kill)
            return bridged

        yield begin


def test_a_finished_log_is_told_once_and_never_again(start: Start, folder: Path) -> None:
    """Application, job, stage and task; the next bridge knows that it is done, and tells the same totals."""
    write(folder / "app-1", program(3))
    bridged = start()
    bridged.until_done()
    assert len(bridged.collector.received) == 3 + 3
    assert bridged.collector.tasks == 3
    assert bridged.printed == ["shop (app-1) ended: 1 job, 3 tasks, 8.0 s"]
    bridged.close()
    again = start()
    again.until_done()
    assert again.collector.received == []
    assert again.collector.tasks == 3


def test_a_series_begins_with_nothing(start: Start, folder: Path) -> None:
    """Else nobody sees it increase; not again after a restart."""
    write(folder / "app-1", program(3))
    first = start()
    first.until_done()
    first.close()
    assert [tasks_of(numbers) for numbers in first.collector.aggregates][:2] == [0, 3]
    again = start()
    again.until_done()
    assert {tasks_of(numbers) for numbers in again.collector.aggregates} == {3}


def test_a_finished_application_stops_being_sent(start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A while after its last totals were accepted; the next of its name counts from 0, after a 0, and none is lost."""
    write(folder / "app-1", program(3))
    bridged = start()
    bridged.until_done()
    assert bridged.collector.tasks == 3
    monkeypatch.setattr("spark_app.eventlog.bridge.bridge.SETTLED_SECONDS", 0.0)
    bridged.until(lambda: not bridged.collector.aggregates[-1].applications)
    before = len(bridged.collector.aggregates)
    monkeypatch.setattr("spark_app.eventlog.bridge.bridge.SETTLED_SECONDS", 300.0)
    write(folder / "app-2", program(2, app_id="app-2"))
    bridged.until_done(2)
    counts = [tasks_of(each) for each in bridged.collector.aggregates[before:] if each.applications]
    assert counts[:2] == [0, 2]
    assert set(counts[1:]) == {2}


def test_an_application_is_sent_until_its_last_totals_are_accepted(
    start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the collector is away."""
    monkeypatch.setattr("spark_app.eventlog.bridge.bridge.SETTLED_SECONDS", 0.0)
    bridged = start()
    bridged.collector.is_willing = False
    write(folder / "app-1", program(3))
    bridged.until(lambda: bridged.bridge.status.metric_failures > 3)
    bridged.collector.is_willing = True
    bridged.until_done()
    assert bridged.collector.tasks == 3


def test_totals_whose_answer_is_missing_count_once(start: Start, folder: Path) -> None:
    """They may have arrived: a series that begins with 0 again would count what it had once more."""

    class Unanswered(Collector):
        def numbers(self, numbers: Aggregate, *, started_ns: int, ended_ns: int) -> bool:
            super().numbers(numbers, started_ns=started_ns, ended_ns=ended_ns)
            return tasks_of(numbers) == 0 or len(self.aggregates) > 4

    write(folder / "app-1", program(3))
    bridged = start(collector=Unanswered())
    bridged.until(lambda: len(bridged.collector.aggregates) > 5)
    counts = [tasks_of(each) for each in bridged.collector.aggregates]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 3)


def test_a_log_that_grows_after_its_application_was_not_sent_counts_once(
    start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read again from its start; what it counted before is sent first, as the base of what is new."""
    monkeypatch.setattr("spark_app.eventlog.bridge.log_directory.LOOK_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr("spark_app.eventlog.bridge.bridge.SETTLED_SECONDS", 0.0)
    lines = program(4)
    log = write(folder / "app-1.inprogress", lines[:5])
    bridged = start(SOON)
    bridged.until_done()
    bridged.until(lambda: not bridged.collector.aggregates[-1].applications)
    before = len(bridged.collector.aggregates)
    log.write_text(text(*lines))
    log.rename(folder / "app-1")
    bridged.until(lambda: bridged.collector.tasks == 4)
    counts = [tasks_of(each) for each in bridged.collector.aggregates[before:] if each.applications]
    assert counts[0] == 2
    assert counts == sorted(counts)


def test_a_growing_log_is_told_as_it_grows(start: Start, folder: Path) -> None:
    """What has ended is exported before the application ends; the renaming at its end loses nothing."""
    lines = program()
    log = write(folder / "app-1.inprogress", lines[:-2])
    bridged = start()
    bridged.until(lambda: len(bridged.collector.received) == 2)
    assert bridged.printed == ["shop (app-1) started"]
    with log.open("a") as file:
        file.write(text(*lines[-2:]))
    log.rename(folder / "app-1")
    bridged.until_done()
    assert len(bridged.collector.received) == 4


def test_a_log_in_work_is_read_again_by_the_next_bridge(
    start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It makes the same spans, and the totals are never less than they were, however slowly it is read."""
    lines = program(4)
    log = write(folder / "app-1.inprogress", lines[:5])
    first = start()
    first.until(lambda: first.collector.tasks == 2)
    first.kill()
    log.write_text(text(*lines))
    log.rename(folder / "app-1")
    monkeypatch.setattr("spark_app.eventlog.bridge.bridge.SLICE_SECONDS", -1.0)
    again = start(collector=first.collector)
    again.until_done()
    counted = [count for numbers in first.collector.aggregates if (count := tasks_of(numbers))]
    assert counted == sorted(counted)
    assert len(again.collector.ids) == len(again.collector.received) == 3 + 4
    assert again.collector.tasks == 4


def test_a_log_that_vanished_while_no_bridge_ran_still_counts(start: Start, folder: Path) -> None:
    """What was exported is never taken back."""
    log = write(folder / "app-1.inprogress", program(4)[:-1])
    first = start()
    first.until(lambda: first.collector.tasks == 4)
    first.kill()
    log.unlink()
    again = start(SOON)
    again.until(lambda: len(again.collector.aggregates) > 2)
    assert again.collector.tasks == 4


def test_a_silent_log_is_given_up_and_taken_up_again_when_it_grows(
    start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its open spans are exported as incomplete; read again, it counts what it counts, not twice."""
    monkeypatch.setattr("spark_app.eventlog.bridge.log_directory.LOOK_AGAIN_SECONDS", 0.0)
    lines = program(2)
    log = write(folder / "app-1.inprogress", lines[:4])
    bridged = start(SOON)
    bridged.until_done()
    incomplete = {
        owned.span.name for owned in bridged.collector.received if owned.span.attributes.get("spark.incomplete")
    }
    assert incomplete == {"application shop", "job save at job.py", "stage save at job.py"}
    log.write_text(text(*lines))
    log.rename(folder / "app-1")
    bridged.until(lambda: bridged.collector.tasks == 2)
    bridged.until_done()
    assert bridged.collector.tasks == 2
    assert "spark.incomplete" not in bridged.collector.received[-1].span.attributes


def test_a_collector_that_is_away_is_waited_for_and_reading_goes_on(start: Start, folder: Path) -> None:
    """All is read; a log is done only when its spans were taken; what happens is said."""
    write(folder / "app-1", program(3))
    bridged = start()
    bridged.collector.is_willing = False
    bridged.until(lambda: bridged.bridge.status.span_failures > 0)
    assert bridged.bridge.status.read.events == len(program(3))
    assert bridged.bridge.status.logs_done == 0
    bridged.collector.is_willing = True
    bridged.until_done()
    assert len(bridged.collector.received) == 6
    assert bridged.bridge.status.spans_dropped == 0
    assert [line for line in bridged.printed if "collector" in line] == [
        "the collector does not accept spans; the bridge retries",
        "the collector accepts spans again",
    ]


def test_a_folder_that_is_not_there_is_waited_for(start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said once."""
    monkeypatch.setattr("spark_app.eventlog.bridge.bridge.POLL_SECONDS", 0.0)
    folder.rmdir()
    bridged, looks = start(), itertools.count()
    bridged.until(lambda: next(looks) > 5)
    write(folder / "app-1", program())
    bridged.until_done()
    assert bridged.printed[0] == f"the bridge cannot read {folder}: No such file or directory; it keeps trying"
    assert len(bridged.printed) == 2


def test_what_is_broken_costs_what_is_broken(start: Start, folder: Path) -> None:
    """A broken line, an unknown event and a torn last line in a log, zstd cut off in another: the rest is exported."""
    lines, others = program(2), program(2, app_id="app-2")
    broken = '{"Event":"SparkListenerTaskEnd"\n{"Event":"SparkListenerNew"}\n{"Event":"SparkListenerTaskEnd"}\nx\n'
    (folder / "app-1").write_text(text(*lines[:3]) + broken + text(*lines[3:]) + '{"Eve')
    frames = [zstandard.ZstdCompressor().compress(text(*part).encode()) for part in (others[:-1], others[-1:])]
    (folder / "app-2.zstd.inprogress").write_bytes(b"".join(frames)[:-5])
    bridged = start(SOON)
    bridged.until_done(2)
    assert bridged.bridge.status.read.unreadable_lines == 3
    assert bridged.collector.tasks == 4
    assert len(bridged.collector.ids) == 2 * 5


def test_a_bug_is_said_with_its_place(start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and counted; the rest of the log is exported."""

    def stumble(*_: object) -> None:
        raise TypeError("no order")

    monkeypatch.setattr("spark_app.eventlog.bridge.event_processor._suppressed", stumble)
    write(folder / "app-1", program())
    bridged = start()
    bridged.until_done()
    read = bridged.bridge.status.read
    assert (read.unreadable_lines, read.failed_events) == (0, 2)
    bug = next(said for said in bridged.printed if "a bug of spark-app" in said)
    assert "StageCompleted: TypeError: no order at test_bridge.py" in bug


def test_other_files_are_left_alone_and_that_is_said(start: Start, folder: Path) -> None:
    """A text, and a log of a codec that is not read here, with what to set."""
    (folder / "notes.txt").write_text("no event\n" * 20)
    (folder / "app-9.lz4").write_bytes(b"?")
    write(folder / "app-1", program())
    bridged = start()
    bridged.until_done()
    bridged.until(lambda: len(bridged.printed) == 3)
    assert f"the bridge skips {folder / 'notes.txt'}: it is not a Spark event log" in bridged.printed
    assert any("set spark.eventLog.compression.codec to zstd" in line for line in bridged.printed)


def test_another_log_under_the_same_name_is_another_log(start: Start, folder: Path) -> None:
    """Both count, the finished one and the one that was given up."""
    for number in (1, 2):
        write(folder / "app-1.inprogress", program(number, app_id=f"app-{number}")[:-1])
        bridged = start(SOON)
        bridged.until_done()
        bridged.kill()
        (folder / "app-1.inprogress").rename(folder.with_name(f"kept-{number}"))
    write(folder / "app-1", program(4, app_id="app-3"))
    bridged = start()
    bridged.until(lambda: bridged.collector.tasks == 1 + 2 + 4)
    bridged.kill()
    write(folder / "new", program(8, app_id="app-4")).replace(folder / "app-1")
    bridged = start()
    bridged.until(lambda: bridged.collector.tasks == 1 + 2 + 4 + 8)


def test_attempts_of_an_application_are_told_apart(start: Start, folder: Path) -> None:
    """Two logs, two applications, no span in common."""
    for attempt in ("1", "2"):
        begin: Line = started() | {"App Attempt ID": attempt}
        write(folder / f"app-1_{attempt}", [begin, *program()[1:]])
    bridged = start()
    bridged.until_done(2)
    assert len(bridged.collector.ids) == 8


def test_an_application_that_never_said_who_it_is_is_told(start: Start, folder: Path) -> None:
    """Its id is that of its log, so that two of them are not taken for one."""
    for name in ("app-1", "app-2"):
        write(folder / name, program()[1:])
    bridged = start()
    bridged.until_done(2)
    assert len(bridged.collector.ids) == 2 * 4
    assert {owned.application for owned in bridged.collector.received} == {"unknown"}


def test_what_runs_now_is_not_kept_waiting_by_history(start: Start, folder: Path) -> None:
    """Of many logs the newest are read first."""
    for number in range(9):
        os.utime(write(folder / f"app-{number}", program(app_id=f"app-{number}")), (number, number))
    bridged = start()
    bridged.until_done(9)
    assert [line.partition(")")[0][-1] for line in bridged.printed] == list("876543210")


def test_the_state_that_cannot_be_written_is_no_reason_to_stop(start: Start, folder: Path) -> None:
    """It is counted and said; spans and totals are exported all the same."""
    write(folder / "app-1", program(2))
    bridged = start()
    shutil.rmtree(folder.with_name("state"))
    folder.with_name("state").write_text("a file where the folder was", encoding="utf-8")
    bridged.until_done()
    assert bridged.collector.tasks == 2
    assert bridged.bridge.status.state_failures > 0
    message = "cannot write the checkpoint: File exists; after a restart the bridge reads these events again"
    assert message in bridged.printed


def test_what_waits_is_sent_at_the_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans of what has ended, and the totals; what is open is for the next bridge."""
    monkeypatch.setattr("spark_app.eventlog.bridge.bridge.CLOSE_SECONDS", 300.0)
    write(folder / "app-1.inprogress", [started(), job(0, [0]), stage(0), task(0, 0), stage(0, end=2900)])
    bridged = Bridged(folder, options=dataclasses.replace(OPTIONS, metrics_every=3600))
    bridged.until(lambda: bridged.bridge.status.read.events == 5)
    bridged.close()
    assert len(bridged.collector.received) == 2
    assert bridged.collector.tasks == 1


def test_a_log_of_which_no_file_is_there_yet_is_not_taken_for_silent(tmp_path: Path) -> None:
    """Spark makes the folder first; nobody knows since when it is empty."""
    log = tmp_path / "eventlog_v2_app-1"
    log.mkdir()
    now = time.time()
    followed = LogProcessor(
        EventLog(log.name, log, 1),
        on_span=lambda *_: None,
        is_crowded=lambda: False,
        thresholds=OPTIONS.thresholds,
        was_counted=False,
    )
    assert followed.grown_at >= now
