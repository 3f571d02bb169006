"""A log is read line by line, each once, whatever becomes of its files."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import zstandard

from spark_app.errors import InputError
from spark_app.eventlog.parse.log_tailer import FOREIGN_BYTES, LogTailer, parts

LINES = [b'{"Event":"%d"}' % number for number in range(5)]


def text(*lines: bytes) -> bytes:
    """Lines as they stand in a file."""
    return b"".join(line + b"\n" for line in lines)


def rolled(folder: Path, number: int, content: bytes, suffix: str = "") -> Path:
    """A rolled file of a log."""
    file = folder / f"events_{number}_app-1{suffix}"
    folder.mkdir(exist_ok=True)
    file.write_bytes(content)
    return file


Follow = Callable[[Path], LogTailer]


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Begins to follow a log."""
    with ExitStack() as stack:
        yield lambda log: stack.enter_context(closing(LogTailer(log)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a rolled log belongs."""
    return tmp_path / "eventlog_v2_app-1"


@pytest.fixture
def single(tmp_path: Path) -> Path:
    """A log of one file, still growing."""
    return tmp_path / "app-1.inprogress"


def test_what_grows_is_given_once_and_only_when_it_is_whole(follow: Follow, single: Path) -> None:
    """Half a line waits for its other half."""
    single.write_bytes(text(LINES[0]) + LINES[1][:4])
    tailer = follow(single)
    assert list(tailer.new()) == [LINES[0]]
    assert list(tailer.new()) == []
    with single.open("ab") as file:
        file.write(LINES[1][4:] + b"\n" + text(LINES[2]))
    assert list(tailer.new()) == LINES[1:3]
    assert tailer.unread_bytes == 0


def test_a_file_that_is_renamed_at_its_end_is_read_on(follow: Follow, single: Path) -> None:
    """Spark takes `.inprogress` off the name; what it wrote before that is not lost, and not read twice."""
    single.write_bytes(text(LINES[0]))
    tailer = follow(single)
    assert list(tailer.new()) == [LINES[0]]
    with single.open("ab") as file:
        file.write(text(LINES[1]))
    assert not tailer.is_finished
    single.rename(single.with_suffix(""))
    assert list(tailer.new()) == [LINES[1]]
    assert tailer.is_finished


def test_a_file_that_is_renamed_before_it_is_opened_is_read(follow: Follow, single: Path) -> None:
    """Whoever has seen it under the one name finds it under the other."""
    single.write_bytes(text(LINES[0]))
    tailer = follow(single)
    single.rename(single.with_suffix(""))
    assert list(tailer.new()) == [LINES[0]]


def test_rolled_files_are_read_in_their_order(follow: Follow, folder: Path) -> None:
    """By number, not by name; a new one ends the one before."""
    rolled(folder, 1, text(LINES[0]))
    tailer = follow(folder)
    assert list(tailer.new()) == [LINES[0]]
    for number, line in ((10, LINES[3]), (2, LINES[1]), (9, LINES[2])):
        rolled(folder, number, text(line))
    assert list(tailer.new()) == LINES[1:4]


def test_a_compact_file_stands_for_all_before_it(follow: Follow, folder: Path) -> None:
    """What it stands for is not read beside it."""
    rolled(folder, 1, text(LINES[0]))
    rolled(folder, 2, text(LINES[1]))
    rolled(folder, 2, text(LINES[1]), ".compact")
    rolled(folder, 3, text(LINES[2]))
    assert [part.path.name for part in parts(folder)] == ["events_2_app-1.compact", "events_3_app-1"]
    assert list(follow(folder).new()) == LINES[1:3]


def test_a_compact_file_is_unpacked_whatever_its_name_says(follow: Follow, folder: Path) -> None:
    """A History Server packs it as its own settings say, and names it as the plain file before."""
    rolled(folder, 2, zstandard.ZstdCompressor().compress(text(*LINES[:2])), ".compact")
    rolled(folder, 3, text(LINES[2]))
    assert list(follow(folder).new()) == LINES[:3]


def test_a_compact_file_is_not_read_beside_what_it_stands_for(follow: Follow, folder: Path) -> None:
    """Whoever was so late that files are gone has lost them, and counts nothing twice."""
    first = rolled(folder, 1, text(*LINES[:2]))
    tailer = follow(folder)
    assert list(tailer.new()) == LINES[:2]
    first.unlink()
    rolled(folder, 3, text(LINES[1], LINES[2]), ".compact")
    assert list(tailer.new()) == []
    rolled(folder, 4, text(LINES[3]))
    assert list(tailer.new()) == [LINES[3]]
    assert tailer.read_errors.lost_files == 2


def test_half_a_frame_of_zstd_waits_for_the_rest(follow: Follow, folder: Path) -> None:
    """Spark ends a frame with each flush; one that is half on disk is no error."""
    first, second = (zstandard.ZstdCompressor().compress(text(*lines)) for lines in (LINES[:2], LINES[2:]))
    file = rolled(folder, 1, first + second[: len(second) // 2], ".zstd")
    tailer = follow(folder)
    given = list(tailer.new())
    assert given[:2] == LINES[:2]
    file.write_bytes(first + second)
    assert given + list(tailer.new()) == LINES
    assert tailer.read_errors.lost_files == 0


def test_what_is_no_zstd_is_counted_and_the_next_file_is_read(follow: Follow, folder: Path) -> None:
    """A file that is broken in its midst costs that file and no more."""
    rolled(folder, 1, zstandard.ZstdCompressor().compress(text(LINES[0])) + b"nonsense", ".zstd")
    rolled(folder, 2, zstandard.ZstdCompressor().compress(text(LINES[1])), ".zstd")
    tailer = follow(folder)
    assert list(tailer.new())[-1:] == [LINES[1]]
    assert (tailer.read_errors.damaged_files, tailer.read_errors.lost_files) == (1, 0)


def test_a_torn_last_line_is_counted(follow: Follow, folder: Path) -> None:
    """A driver that was killed leaves half a line; it is not given as one."""
    rolled(folder, 1, text(LINES[0]) + LINES[1][:3])
    rolled(folder, 2, text(LINES[2]))
    tailer = follow(folder)
    assert list(tailer.new()) == [LINES[0], LINES[2]]
    assert tailer.read_errors.torn_lines == 1


def test_a_last_line_without_a_line_break_is_given_when_no_more_follows(follow: Follow, folder: Path) -> None:
    """In a file that is followed by another, and in the last one of a finished log; never of one that grows."""
    rolled(folder, 1, text(LINES[0]) + LINES[1])
    rolled(folder, 2, LINES[2])
    tailer = follow(folder)
    assert list(tailer.new()) == LINES[:2]
    (folder / "appstatus_app-1").touch()
    assert list(tailer.new()) == [LINES[2]]
    assert list(tailer.new()) == []
    tailer.close()
    assert tailer.read_errors.torn_lines == 0


def test_a_file_that_shrinks_is_left_alone(follow: Follow, single: Path) -> None:
    """It is another file under the same name: nothing of it is read as a part of the first."""
    single.write_bytes(text(*LINES))
    tailer = follow(single)
    assert list(tailer.new()) == LINES
    single.write_bytes(text(LINES[4]))
    assert list(tailer.new()) == []
    with single.open("ab") as file:
        file.write(text(*LINES) * 9)
    assert list(tailer.new()) == []
    assert (tailer.read_errors.lost_files, tailer.unread_bytes) == (1, 0)


def test_a_log_that_vanishes_has_no_more_lines(follow: Follow, folder: Path) -> None:
    """Whatever deletes it; what is open is read to its end."""
    file = rolled(folder, 1, text(LINES[0]))
    tailer = follow(folder)
    assert list(tailer.new()) == [LINES[0]]
    file.unlink()
    folder.rmdir()
    assert list(tailer.new()) == []
    assert parts(folder) == []


def test_a_log_that_is_gone_is_not_finished(follow: Follow, single: Path) -> None:
    """Nobody knows how it would have ended."""
    single.write_bytes(text(LINES[0]))
    tailer = follow(single)
    single.unlink()
    assert not tailer.is_finished


def test_a_folder_that_cannot_be_listed_has_no_lines(follow: Follow, folder: Path) -> None:
    """Here because it leads to itself; one without permission is the same to whoever reads."""
    folder.symlink_to(folder)
    assert list(follow(folder).new()) == []


def test_a_file_that_cannot_be_opened_is_counted(follow: Follow, folder: Path) -> None:
    """The others are read."""
    rolled(folder, 1, text(LINES[0]))
    (folder / "events_2_app-1").symlink_to(folder / "nowhere")
    rolled(folder, 3, text(LINES[1]))
    tailer = follow(folder)
    assert list(tailer.new()) == LINES[:2]
    assert tailer.read_errors.lost_files == 1


def test_rolled_files_that_went_unread_are_counted(follow: Follow, folder: Path) -> None:
    """Whoever comes late knows how much is missing."""
    rolled(folder, 1, text(LINES[0])).rename(folder / "events_1_app-1")
    tailer = follow(folder)
    assert list(tailer.new()) == [LINES[0]]
    rolled(folder, 4, text(LINES[1]))
    assert list(tailer.new()) == [LINES[1]]
    assert tailer.read_errors.lost_files == 2


def test_a_line_of_many_chunks_is_one_line(follow: Follow, single: Path) -> None:
    """A plan of 30 MB is a line like any other."""
    long = b'{"Event":"' + b"x" * 30_000_000 + b'"}'
    single.write_bytes(text(LINES[0], long, LINES[1]))
    assert list(follow(single).new()) == [LINES[0], long, LINES[1]]


@pytest.mark.parametrize("codec", ["lz4", "lzf", "snappy"])
def test_another_codec_is_named_with_what_to_set(codec: str, follow: Follow, folder: Path) -> None:
    """One line says what this cannot read, and the property that changes it."""
    rolled(folder, 1, b"?", f".{codec}")
    advice = r"set spark\.eventLog\.compression\.codec to zstd and run the application again"
    with pytest.raises(InputError, match=f"compressed with {codec}, which spark-app does not read: {advice}"):
        follow(folder)


@pytest.mark.parametrize(("name", "is_finished"), [("appstatus_app-1.inprogress", False), ("appstatus_app-1", True)])
def test_a_rolled_log_says_whether_it_is_finished(
    follow: Follow, folder: Path, name: str, *, is_finished: bool
) -> None:
    """By the name of its status file."""
    rolled(folder, 1, b"")
    (folder / name).touch()
    assert follow(folder).is_finished == is_finished


def test_a_file_without_line_breaks_is_not_kept_in_memory(follow: Follow, tmp_path: Path) -> None:
    """A core dump beside the logs; an event may be as long."""
    dump, log = tmp_path / "core", tmp_path / "app-1"
    dump.write_bytes(b"\x7fELF" + bytes(4 * FOREIGN_BYTES) + b"\n")
    long = b'{"Event":"' + b"x" * FOREIGN_BYTES + b'"}'
    log.write_bytes(text(long, *LINES))
    dumped = follow(dump)
    assert list(dumped.new()) == []
    assert dumped.read_errors.damaged_files == 1
    assert list(follow(log).new()) == [long, *LINES]
