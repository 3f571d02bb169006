"""Recordings of `recordings/Split.java`, read as `jfr print` of Java 25 reads them: two functions share 70 to 30."""

from pathlib import Path
from typing import Final

import pytest
import zstandard

from spark_app.stack_samples.flight_recordings import Recording, read

RECORDINGS: Final = Path(__file__).parent / "recordings"


def recorded(name: str) -> bytes:
    """The content of a recording."""
    content = (RECORDINGS / f"{name}.jfr.zst").read_bytes()
    return zstandard.ZstdDecompressor().decompressobj().decompress(content)


def count(recording: Recording, method: str) -> int:
    """The samples with a method on the stack."""
    return sum(
        any((frame.type, frame.method) == ("Split", method) for frame in each.frames) for each in recording.samples
    )


@pytest.mark.parametrize(
    ("name", "event", "thread", "heavy", "light", "first"),
    [
        ("java-17", "jdk.ExecutionSample", 1, 135, 61, 1795660192707),
        ("java-25", "jdk.CPUTimeSample", 3, 141, 59, 1795660196935),
    ],
)
def test_samples_are_those_that_java_itself_reads(
    name: str, event: str, thread: int, heavy: int, light: int, first: int
) -> None:
    """Of both versions: events, threads, times and stacks."""
    recording = Recording()
    read(recorded(name), recording)
    assert {each.event for each in recording.samples} == {event}
    assert {each.thread for each in recording.samples} == {thread}
    assert (count(recording, "heavy"), count(recording, "light")) == (heavy, light)
    assert min(each.at_ms for each in recording.samples) == first
    assert recording.arguments == "Split 4000"
    assert all(each.is_complete and each.frames[0].method == "main" for each in recording.samples)
    assert 3500 < recording.ended_ms - recording.started_ms < 4500


def test_a_killed_jvm_leaves_what_it_had_recorded(tmp_path: Path) -> None:
    """It was killed after 3.5 seconds; it writes once a second."""
    recording = Recording()
    read(recorded("java-17-killed"), recording)
    assert len(recording.samples) == 143
    assert recording.ended_ms - recording.started_ms == 2953


@pytest.mark.parametrize("length", [0, 100, 90_000])
def test_a_damaged_recording_is_one_error(length: int) -> None:
    """Whatever is in place of its values."""
    content = recorded("java-17")
    with pytest.raises(ValueError, match="no whole recording"):
        read(content[:length].ljust(len(content), b"\xff"), Recording())
