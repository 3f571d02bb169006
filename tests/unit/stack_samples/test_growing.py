"""Recordings of `recordings/Split.java` at two times while the JVM writes them, and growing files of Python."""

import json
from pathlib import Path
from typing import Final

import pytest

from spark_app.stack_samples import growing
from spark_app.stack_samples.flight_recordings import HEADER, Recording, read
from spark_app.stack_samples.growing import STATE, WRITING, GrowingFiles
from tests.unit.stack_samples.test_flight_recordings import recorded

PROCESS: Final = '["process","python_worker",7,1,"host",10.0,1000,null,"/srv/me","jobs/job.py",[],"/usr"]\n'


class Files:
    """The folder of a command with one JVM, process 42."""

    def __init__(self, folder: Path) -> None:
        """Makes it."""
        self.chunk = folder / "repository" / "2026_11_26_06_42_30_42" / "2026_11_26_06_42_30.jfr"
        self.python = folder / "python"
        self.chunk.parent.mkdir(parents=True)
        self.python.mkdir()
        self.growing = GrowingFiles(folder / "repository", self.python)

    def samples(self, begin: int = 0) -> list[str]:
        """The samples of the JVM from a time on, after a look."""
        recording = self.growing.since(begin).java[42]
        return sorted(map(repr, recording.samples))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A command."""
    return Files(tmp_path)


def whole(name: str) -> Recording:
    """All of a recording, read at once."""
    recording = Recording()
    read(recorded(name), recording)
    return recording


@pytest.mark.parametrize("java", ["java-17", "java-25"])
def test_what_a_look_adds_makes_the_whole(files: Files, java: str) -> None:
    """Two looks at a chunk give the samples that all of it has; a third adds none."""
    seen = []
    for number in (1, 2, 2):
        files.chunk.write_bytes(recorded(f"{java}-growing-{number}"))
        seen.append(files.samples())
    first, second = (sorted(map(repr, whole(f"{java}-growing-{number}").samples)) for number in (1, 2))
    assert seen == [first, second, second]
    assert 50 < len(first) < len(second)
    assert files.growing.since(0).java[42].arguments == "Split 6000"


@pytest.mark.parametrize("java", ["java-17", "java-25"])
def test_a_look_reads_no_more_than_its_limit(files: Files, monkeypatch: pytest.MonkeyPatch, java: str) -> None:
    """What is left follows in the next ones, and is said to be left; samples wait for the stacks that come later."""
    monkeypatch.setattr(growing, "MOST_BYTES", 500)
    files.chunk.write_bytes(recorded(f"{java}-growing-2"))
    expected, looks = sorted(map(repr, whole(f"{java}-growing-2").samples)), 1
    while files.samples() != expected or files.growing.is_behind:
        looks += 1
        assert looks < 300
    assert looks > 5


def test_samples_of_before_the_window_are_dropped(files: Files) -> None:
    """Whether they were read before or not."""
    files.chunk.write_bytes(recorded("java-17-growing-1"))
    times = sorted(each.at_ms for each in whole("java-17-growing-2").samples)
    middle = times[len(times) // 2]
    files.samples()
    files.chunk.write_bytes(recorded("java-17-growing-2"))
    assert len(files.samples(middle)) == sum(each >= middle for each in times)
    assert files.samples(times[-1] + 1) == []


def test_a_header_that_is_being_written_is_left_for_the_next_look(files: Files) -> None:
    """As is a chunk without one, and one whose JVM has only begun."""
    content = recorded("java-17-growing-1")
    for damaged in (b"", content[:STATE] + bytes([WRITING]) + content[STATE + 1 :], content[: len(content) // 2]):
        files.chunk.write_bytes(damaged)
        assert files.samples() == []
    begun = bytearray(content[: HEADER.size])
    begun[16:32] = bytes(16)
    files.chunk.write_bytes(begun)
    assert files.samples() == []
    files.chunk.write_bytes(content)
    assert len(files.samples()) > 50


def test_the_chunk_that_follows_takes_the_place_of_one_that_has_ended(files: Files) -> None:
    """What was read of the first stays in the window; a JVM that has gone is no process any more."""
    files.chunk.write_bytes(recorded("java-17-growing-2"))
    before = files.samples()
    files.chunk.with_stem("2026_11_26_06_42_50").write_bytes(b"")
    assert files.samples() == before
    for chunk in files.chunk.parent.iterdir():
        chunk.unlink()
    assert files.growing.since(0).java == {}


def lines(*rows: list[object]) -> str:
    """Lines of a file of a Python process."""
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def test_python_processes_have_the_frames_of_their_window(files: Files) -> None:
    """A line that is cut waits for its rest; stacks of before the window are not among them."""
    file = files.python / "7-1.stacks"
    file.write_text(
        PROCESS + lines(["frame", "a.py", "old", 1], ["frame", "a.py", "new", 2], ["stack", 0], ["stack", 1])
    )
    with file.open("a") as growing_file:
        growing_file.write(lines(["sample", 1000, 5, 0, "running", None, 1.0]) + '["sample",2000,5,1,"runn')
    (process,) = files.growing.since(500).python
    assert ([each.at_ms for each in process.samples], process.frames) == ([1000], [("a.py", "old", 1)])
    with file.open("a") as growing_file:
        growing_file.write('ing",9,1.0]\n')
    (process,) = files.growing.since(1500).python
    assert [(each.at_ms, each.stack, each.task) for each in process.samples] == [(2000, 0, 9)]
    assert (process.frames, process.stacks) == ([("a.py", "new", 2)], [[0]])


def test_a_long_file_of_a_python_process_takes_several_looks(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads a part of it."""
    monkeypatch.setattr(growing, "MOST_BYTES", 300)
    rows: list[list[object]] = [["sample", 1000 + number, 5, 0, "running", None, 1.0] for number in range(20)]
    (files.python / "7-1.stacks").write_text(PROCESS + lines(["frame", "a.py", "old", 1], ["stack", 0], *rows))
    seen = list[int]()
    while not seen or files.growing.is_behind:
        seen.append(sum(len(process.samples) for process in files.growing.since(0).python))
    assert seen == sorted(seen)
    assert seen[-1] == 20
    assert len(seen) > 2
