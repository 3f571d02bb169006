import multiprocessing
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from spark_app.errors import MachineError
from spark_app.local_files import (
    ensure_dir,
    exclusive_lock,
    local_path,
    new_locked_file,
    project_folder,
    try_lock,
    try_lock_folder,
    write_atomic,
)
from tests.polling import poll_until


def test_ensure_dir_names_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    """With the reason."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MachineError, match=r"cannot create folder .*file/below: Not a directory"):
        ensure_dir(tmp_path / "file" / "below")
    assert ensure_dir(ensure_dir(tmp_path / "a" / "b")).is_dir()


def test_git_ignores_what_is_written_to_the_state_folder_of_a_project(tmp_path: Path) -> None:
    """However its first file gets there; what the user says instead is kept."""
    ensure_dir(tmp_path / "a" / ".spark-app" / "spark-events")
    write_atomic(tmp_path / "b" / ".spark-app" / "reports" / "x.html", b"")
    assert [(tmp_path / name / ".spark-app" / ".gitignore").read_text() for name in "ab"] == ["*\n", "*\n"]
    (tmp_path / "a" / ".spark-app" / ".gitignore").write_text("reports/\n")
    ensure_dir(tmp_path / "a" / ".spark-app" / "reports")
    assert (tmp_path / "a" / ".spark-app" / ".gitignore").read_text() == "reports/\n"
    assert [*ensure_dir(tmp_path / "c").iterdir()] == []


def test_a_project_begins_where_its_repository_or_its_pyproject_is(tmp_path: Path) -> None:
    """The nearest one upwards; a folder in no project stands for itself."""
    deep = ensure_dir(tmp_path / "repository" / "service" / "jobs")
    assert project_folder(deep) == deep
    ensure_dir(tmp_path / "repository" / ".git")
    assert project_folder(deep) == tmp_path / "repository"
    (tmp_path / "repository" / "service" / "pyproject.toml").touch()
    assert project_folder(deep) == tmp_path / "repository" / "service"


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/data/raw", "/data/raw"),
        ("data/100% #1", "data/100% #1"),
        ("file:/data/my%20raw", "/data/my raw"),
        ("file:///data/raw", "/data/raw"),
        ("file://localhost/data/raw", "/data/raw"),
        ("file://host/data/raw", None),
        ("s3a://bucket/raw", None),
    ],
)
def test_local_path_decodes_file_uris_and_takes_paths_as_they_are(location: str, path: str | None) -> None:
    """A URI of another machine or scheme has none."""
    assert local_path(location) == (path and Path(path))


def test_write_atomic_replaces_a_file_whole_or_not_at_all(tmp_path: Path) -> None:
    """The file has the mode of any new file; a failed write leaves no part behind and keeps what was there."""
    write_atomic(tmp_path / "new" / "file", b"1")
    write_atomic(tmp_path / "new" / "file", b"2", is_durable=True)
    (tmp_path / "other").touch()
    assert (tmp_path / "new" / "file").read_bytes() == b"2"
    assert (tmp_path / "new" / "file").stat().st_mode == (tmp_path / "other").stat().st_mode
    (tmp_path / "new" / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomic(tmp_path / "new" / "taken", b"3")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["file", "taken"]


def test_who_reads_a_file_while_it_is_written_reads_the_old_content(tmp_path: Path) -> None:
    """All of it, in its own time: nothing is written over what a reader has opened."""
    write_atomic(tmp_path / "file", b"old content")
    with (tmp_path / "file").open("rb", buffering=0) as reader:
        start = reader.read(3)
        write_atomic(tmp_path / "file", b"new")
        assert start + reader.read() == b"old content"


def hold(file: Path, held: Event, release: Event) -> None:
    """Holds a lock until it may release it."""
    with exclusive_lock(file):
        held.set()
        release.wait()


def test_a_second_holder_of_a_lock_waits_until_the_first_is_gone(tmp_path: Path) -> None:
    """Another lock is free meanwhile, and a killed holder keeps nobody waiting."""
    started = multiprocessing.get_context("spawn")
    held, release, waits = started.Event(), started.Event(), list[str]()
    file = tmp_path / "locks" / "key"
    holder = started.Process(target=hold, args=(file, held, release), daemon=True)
    holder.start()
    assert held.wait(60)
    with try_lock(file) as is_locked, try_lock(tmp_path / "missing") as is_missing_locked:
        assert (is_locked, is_missing_locked) == (False, False)
    with exclusive_lock(tmp_path / "locks" / "other", on_wait=lambda: pytest.fail("nobody holds it")):
        pass

    def kill() -> None:
        waits.append("waiting")
        holder.kill()

    with exclusive_lock(file, on_wait=kill):
        assert waits == ["waiting"]
    with try_lock(file) as is_locked:
        assert is_locked
    poll_until(lambda: not holder.is_alive(), "the end of the holder")


def test_a_new_locked_file_is_locked_as_long_as_it_exists(tmp_path: Path) -> None:
    """It goes with its holder, and leaves nothing else."""
    with new_locked_file(tmp_path / "running"):
        with try_lock(tmp_path / "running") as is_locked:
            assert not is_locked
        assert [path.name for path in tmp_path.iterdir()] == ["running"]
    assert list(tmp_path.iterdir()) == []


def test_without_a_lock_file_nothing_is_locked() -> None:
    """As for tables on object storage."""
    with exclusive_lock(None), exclusive_lock(None):
        pass


def test_a_folder_that_is_held_is_held_by_one(tmp_path: Path) -> None:
    """A folder without write permission can be held, too; one that is missing holds up nobody."""
    tmp_path.chmod(0o500)
    with try_lock_folder(tmp_path) as first, try_lock_folder(tmp_path) as second:
        assert (first, second) == (True, False)
    with try_lock_folder(tmp_path) as again, try_lock_folder(tmp_path / "missing") as missing:
        assert (again, missing) == (True, True)
