"""What of a folder is an event log."""

from pathlib import Path

import pytest

from spark_app.eventlog.parse.log_files import logs_in


def test_logs_are_files_and_folders_of_rolled_files(tmp_path: Path) -> None:
    """Not what is hidden, a checksum, or another folder."""
    for name in ("app-1", "app-2.zstd.inprogress", ".app-1.crc", "app-3.tmp", "eventlog_v2_file"):
        (tmp_path / name).write_bytes(b"12345")
    for name in ("eventlog_v2_app-4", "other"):
        (tmp_path / name).mkdir()
    assert set(logs_in(tmp_path)) == {"app-1", "app-2.zstd", "eventlog_v2_app-4"}


def test_a_log_keeps_its_key_and_its_inode_when_it_is_finished(tmp_path: Path) -> None:
    """Spark takes `.inprogress` off its name."""
    growing = tmp_path / "app-1.inprogress"
    growing.write_bytes(b"12345")
    before = logs_in(tmp_path)["app-1"]
    growing.rename(tmp_path / "app-1")
    after = logs_in(tmp_path)["app-1"]
    assert (before.key, before.inode) == (after.key, after.inode)
    assert (before.path.name, after.path.name) == ("app-1.inprogress", "app-1")


def test_size_and_last_change_are_those_of_its_files(tmp_path: Path) -> None:
    """Of all that are read; nothing of a log that is gone."""
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    for number in (1, 2):
        (folder / f"events_{number}_app-1").write_bytes(b"12345")
    log = logs_in(tmp_path)["eventlog_v2_app-1"]
    assert log.size() == 10
    assert log.modified() == (folder / "events_2_app-1").stat().st_mtime
    for file in folder.iterdir():
        file.unlink()
    assert (log.size(), log.modified()) == (0, 0.0)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """It is for the caller to wait."""
    with pytest.raises(FileNotFoundError):
        logs_in(tmp_path / "none")
