import subprocess
import threading
from pathlib import Path

import pytest

from spark_app.spark.class_data_archive import (
    LOCK,
    UNFINISHED,
    Rehearse,
    build_class_data,
    build_in_background,
    class_data_archive,
)
from spark_app.spark.java_runtime import require_java


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that archives go to, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "spark-app" / "class-data"


def writing(content: bytes) -> Rehearse:
    """A rehearsal that makes an archive of this content."""

    def rehearse(file: Path) -> None:
        file.write_bytes(content)

    return rehearse


def archives_in(cache: Path) -> list[Path]:
    """What a folder of archives holds, beside its lock."""
    return [path for path in cache.iterdir() if path.name != LOCK]


def java_of(folder: Path, version: str) -> Path:
    """A Java that states this version."""
    java = folder / version / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("")
    (folder / version / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return java


def test_an_archive_is_built_once_and_found(cache: Path) -> None:
    """What the rehearsal made is found from then on, and it is not made again."""
    java = require_java()
    assert class_data_archive(java) is None
    built = build_class_data(java, rehearse=writing(b"classes"))
    assert built == class_data_archive(java)
    assert built is not None
    assert built.read_bytes() == b"classes"
    assert built.parent == cache
    assert build_class_data(java, rehearse=lambda _: pytest.fail("rehearsed again")) == built
    assert archives_in(cache) == [built]


def test_an_archive_of_another_java_is_replaced(cache: Path, tmp_path: Path) -> None:
    """An archive fits one Java only; the newer one takes its place, since each is large."""
    old, new = (java_of(tmp_path, version) for version in ("17.0.1", "17.0.2"))
    build_class_data(old, rehearse=writing(b"old"))
    assert class_data_archive(new) is None
    built = build_class_data(new, rehearse=writing(b"new"))
    assert built is not None
    assert archives_in(cache) == [built]
    assert class_data_archive(old) is None


def test_an_archive_that_was_cut_short_is_not_used(cache: Path) -> None:
    """Java dies of one, so a full disk or a lost file system must not leave it in use."""
    java = require_java()
    built = build_class_data(java, rehearse=writing(b"classes"))
    assert built is not None
    built.write_bytes(b"clas")
    assert class_data_archive(java) is None


def failing(_: Path) -> None:
    """A rehearsal whose session fails."""
    raise subprocess.CalledProcessError(1, "java")


def making_nothing(_: Path) -> None:
    """A rehearsal with a Java that cannot make archives."""


@pytest.mark.parametrize("rehearse", [failing, making_nothing])
def test_a_failed_rehearsal_only_means_that_there_is_no_archive(cache: Path, rehearse: Rehearse) -> None:
    """Spark starts without one as well, so nothing is raised, and nothing is left lying about."""
    assert build_class_data(require_java(), rehearse=rehearse) is None
    assert archives_in(cache) == []


def test_a_cache_that_cannot_be_written_only_means_that_there_is_no_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home that is read-only is no reason to fail."""
    (tmp_path / "cache").write_text("a file in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert build_class_data(require_java()) is None


def test_two_builders_take_turns_and_build_once(cache: Path) -> None:
    """A build in the background and one that somebody waits for do the work once between them."""
    java, built = require_java(), list[Path | None]()
    has_begun, second_has_started = threading.Event(), threading.Event()

    def rehearse(file: Path) -> None:
        has_begun.set()
        assert second_has_started.wait(30)
        file.write_bytes(b"classes")

    second = threading.Thread(
        target=lambda: built.append(build_class_data(java, rehearse=lambda _: pytest.fail("built twice")))
    )
    first = threading.Thread(target=lambda: built.append(build_class_data(java, rehearse=rehearse)))
    first.start()
    assert has_begun.wait(30)
    second.start()
    second_has_started.set()
    first.join(30)
    second.join(30)
    assert built == [class_data_archive(java)] * 2


def test_what_a_killed_build_has_left_is_deleted(cache: Path) -> None:
    """An unfinished archive holds 200 MB that no later start uses."""
    left = cache / f"{UNFINISHED}x" / "classes.jsa"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"clas")
    built = build_class_data(require_java(), rehearse=writing(b"classes"))
    assert archives_in(cache) == [built]


def test_nothing_starts_in_the_background_once_there_is_an_archive(cache: Path) -> None:
    """Each `make run-etl` asks for it, and only the first has something to do."""
    java = require_java()
    build_class_data(java, rehearse=writing(b"classes"))
    assert not build_in_background(java)
