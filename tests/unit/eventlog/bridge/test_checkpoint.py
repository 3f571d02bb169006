"""What a bridge writes down is there after a crash, whole, and only for one bridge at a time."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spark_app.errors import MachineError
from spark_app.eventlog.bridge.checkpoint import MAX_APART, NAME, Checkpoint, CheckpointStore
from spark_app.eventlog.parse.log_files import EventLog
from tests.unit.eventlog.bridge.test_metrics import aggregator
from tests.unit.eventlog.logs import program, tasks_of

LOG = EventLog("app-1", Path("app-1"), 7)
NUMBERS = aggregator(program(3)).aggregate()


@pytest.fixture
def state(tmp_path: Path) -> Iterator[CheckpointStore]:
    """A new folder of state."""
    with closing(CheckpointStore(tmp_path / "state")) as found:
        yield found


def test_what_is_saved_is_loaded(state: CheckpointStore) -> None:
    """Totals, logs and the start that they count from."""
    checkpoint = state.load()
    checkpoint.close(LOG, NUMBERS)
    checkpoint.keep(EventLog("app-2", Path("app-2"), 8), NUMBERS)
    state.save(checkpoint)
    assert state.load() == checkpoint
    assert state.load().started_ns == checkpoint.started_ns


def test_a_log_counts_once_whatever_becomes_of_it() -> None:
    """Kept, given up, taken up again, closed, forgotten: 3 tasks."""
    checkpoint = Checkpoint()
    checkpoint.keep(LOG, NUMBERS)
    checkpoint.give_up(LOG, NUMBERS, size=9)
    assert checkpoint.is_done(LOG)
    assert tasks_of(checkpoint.totals) == 0
    checkpoint.close(LOG, NUMBERS)
    checkpoint.forget(LOG.key)
    assert tasks_of(checkpoint.totals) == 3


def test_what_is_kept_apart_is_bounded() -> None:
    """Of many logs that were given up the oldest are added up; none is lost."""
    checkpoint = Checkpoint()
    for number in range(MAX_APART + 5):
        checkpoint.give_up(EventLog(f"app-{number}", Path("x"), number), NUMBERS, size=1)
    assert [key for key, entry in checkpoint.logs.items() if entry.state == "closed"] == [f"app-{n}" for n in range(5)]
    assert tasks_of(checkpoint.totals) == 5 * 3


def test_what_is_gone_is_at_work_no_more() -> None:
    """Its tasks count, but none of them is active."""
    checkpoint = Checkpoint()
    checkpoint.keep(LOG, aggregator(program(3)[:-1]).aggregate())
    checkpoint.forget(LOG.key)
    assert tasks_of(checkpoint.totals) == 3
    assert [numbers.levels for numbers in checkpoint.totals.applications.values()] == [{}]


def test_another_file_of_the_same_name_is_not_done() -> None:
    """By its inode."""
    checkpoint = Checkpoint()
    checkpoint.close(LOG, NUMBERS)
    assert checkpoint.is_done(LOG)
    assert not checkpoint.is_done(EventLog("app-1", Path("app-1"), 8))


def test_a_save_that_fails_leaves_the_old_state(state: CheckpointStore, tmp_path: Path) -> None:
    """The new one is written beside it, and takes its place when it is whole."""
    checkpoint = state.load()
    state.save(checkpoint)
    (tmp_path / "state" / NAME).rename(tmp_path / "old")
    (tmp_path / "state" / NAME).mkdir()
    checkpoint.close(LOG, NUMBERS)
    with pytest.raises(IsADirectoryError):
        state.save(checkpoint)
    (tmp_path / "state" / NAME).rmdir()
    (tmp_path / "old").rename(tmp_path / "state" / NAME)
    assert state.load().logs == {}
    assert len(list((tmp_path / "state").iterdir())) == 2


def test_two_bridges_do_not_share_a_state(state: CheckpointStore, tmp_path: Path) -> None:
    """The second one hears so, until the first is gone."""
    with pytest.raises(MachineError, match="another bridge uses the checkpoint in"):
        CheckpointStore(tmp_path / "state")
    state.close()
    CheckpointStore(tmp_path / "state").close()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match=r"the bridge cannot write its checkpoint in .*file/state.*--state"):
        CheckpointStore(tmp_path / "file" / "state")


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x81\xa7version\x63", b"\x81\xa6totals\x81\xacapplications\x01"])
def test_a_journal_that_is_none_is_not_guessed_at(state: CheckpointStore, tmp_path: Path, content: bytes) -> None:
    """Its totals would be wrong: whoever runs it decides."""
    (tmp_path / "state" / NAME).write_bytes(content)
    with pytest.raises(MachineError, match="delete it to start counting at 0"):
        state.load()


def test_numbers_with_other_bounds_are_not_added_up(state: CheckpointStore) -> None:
    """They were counted by another version of this program."""
    numbers, checkpoint = aggregator(program(3)).aggregate(), Checkpoint()
    groups = numbers.applications["shop"].groups.values()
    next(iter(groups)).histograms["spark.task.duration"].counts.append(0)
    checkpoint.keep(LOG, numbers)
    state.save(checkpoint)
    with pytest.raises(MachineError, match="delete it to start counting at 0"):
        state.load()


def test_the_lock_and_the_journal_are_all_there_is(state: CheckpointStore, tmp_path: Path) -> None:
    """Nothing is left over by a save."""
    state.save(state.load())
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == [NAME, "lock"]
