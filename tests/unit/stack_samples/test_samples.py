"""The file of stack samples: what is written is read, and other content is a clear error."""

from pathlib import Path
from typing import Final

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from spark_app.eventlog.parse.remote import RemotePath
from spark_app.eventlog.parse.storage import Storage
from spark_app.stack_samples.samples import Frame, Process, Sample, StackSamples, file_of, read, write

SAMPLES: Final = StackSamples(
    [Process("python_worker", "driver", "host", 7, 10.0, 1000, 2000)],
    [Frame("python", "main", "job.py", 3, is_own=True), Frame("python", "score", "job.py", 9)],
    [[0, 1]],
    [Sample(1010, 0, 7, 0, task=12)],
)


def test_samples_survive_their_file(tmp_path: Path) -> None:
    """What is written is read again, and no other file is left."""
    file = file_of(tmp_path / "local-1.zst")
    write(SAMPLES, file)
    assert file == tmp_path / ".local-1.stacks.zst"
    assert read(file) == SAMPLES
    assert list(tmp_path.iterdir()) == [file]


def test_samples_lie_beside_a_log_of_another_storage() -> None:
    """As its log does, and are read from there."""
    driver = MemoryFileSystem()
    file = file_of(RemotePath("/logs/local-1.zst", "memory://logs/local-1.zst", Storage(driver)))
    write(SAMPLES, file)
    assert driver.find("/logs") == ["/logs/.local-1.stacks.zst"]
    assert read(file) == SAMPLES


def test_other_content_is_an_error_with_the_name_of_the_file(tmp_path: Path) -> None:
    """The error names the file."""
    file = tmp_path / ".local-1.stacks.zst"
    file.write_bytes(b"no samples")
    with pytest.raises(ValueError, match=r"\.local-1\.stacks\.zst has no stack samples"):
        read(file)
