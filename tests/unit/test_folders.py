import multiprocessing
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from app.errors import MachineError
from app.folders import alone, local, made, put
from app.settings import Settings, load_settings
from tests.polling import poll_until


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """With the reason."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MachineError, match=r"cannot make folder .*file/below: Not a directory"):
        made(tmp_path / "file" / "below")
    assert made(made(tmp_path / "a" / "b")).is_dir()


@pytest.mark.parametrize(
    ("place", "path"),
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
def test_a_place_is_on_this_machine_or_is_none_of_its_paths(place: str, path: str | None) -> None:
    """An address is decoded, a path is taken as it is."""
    assert local(place) == (path and Path(path))


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    """Its mode is that of any new file; what cannot be put leaves nothing behind, and what was there stays."""
    put(tmp_path / "new" / "file", b"1")
    put(tmp_path / "new" / "file", b"2")
    (tmp_path / "other").touch()
    assert (tmp_path / "new" / "file").read_bytes() == b"2"
    assert (tmp_path / "new" / "file").stat().st_mode == (tmp_path / "other").stat().st_mode
    (tmp_path / "new" / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        put(tmp_path / "new" / "taken", b"3")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["file", "taken"]


def hold(settings: Settings, held: Event, release: Event) -> None:
    """Keeps a key until it is told to let go."""
    with alone(settings, "key", note=print):
        held.set()
        release.wait()


def test_a_second_holder_waits_and_is_told(tmp_path: Path) -> None:
    """Of the same key; another key is free, and a killed holder keeps nobody waiting."""
    settings = load_settings().model_copy(update={"home": tmp_path})
    started = multiprocessing.get_context("spawn")
    held, release, notes = started.Event(), started.Event(), list[str]()
    holder = started.Process(target=hold, args=(settings, held, release), daemon=True)
    holder.start()
    assert held.wait(60)
    with alone(settings, "other", note=notes.append):
        assert notes == []

    def kill(text: str) -> None:
        notes.append(text)
        holder.kill()

    with alone(settings, "key", note=kill):
        assert notes == ["another run of key is at work: waiting for it to end"]
    poll_until(lambda: not holder.is_alive(), "the end of the holder")


def test_a_warehouse_may_be_an_address_of_this_machine(tmp_path: Path) -> None:
    """It is locked as it is by its path."""
    settings = load_settings().model_copy(update={"home": tmp_path, "warehouse": (tmp_path / "w w").as_uri()})
    with alone(settings, "key", note=print):
        assert [path.name for path in (tmp_path / "w w").rglob("*.lock")] == ["key.lock"]


def test_a_warehouse_elsewhere_has_no_lock(tmp_path: Path) -> None:
    """Delta's own conflict check is what keeps two runs right there."""
    settings = load_settings().model_copy(update={"home": tmp_path, "warehouse": "s3a://bucket/warehouse"})
    with alone(settings, "key", note=print), alone(settings, "key", note=print):
        assert list(tmp_path.iterdir()) == []
