"""Names of files have no folder of a machine, and cut files are read."""

from pathlib import Path

import pytest

from spark_app.stack_samples.python_stacks import Names, read

PROCESS = b'["process","python_driver",7,null,"host",10.0,1000,null,"/srv/me","jobs/job.py",["/srv/me/lib"],"/usr"]\n'


@pytest.mark.parametrize(
    ("file", "name", "is_own"),
    [
        ("jobs/job.py", "job.py", True),
        ("/srv/me/jobs/parts/score.py", "parts/score.py", True),
        ("/srv/me/lib/mine/other.py", "mine/other.py", False),
        ("/elsewhere/secret/tool.py", "tool.py", False),
        ("/srv/me/jobs/.venv/lib/python3.11/site-packages/numpy/core.py", "numpy/core.py", False),
        ("/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", "pyspark/worker.py", False),
        ("/usr/lib/python3.11/socket.py", "socket.py", False),
        ("/var/ipykernel_12/345.py", "notebook", True),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>", False),
    ],
)
def test_a_file_is_named_by_its_package_or_program(file: str, name: str, is_own: bool) -> None:  # noqa: FBT001 - a parameter
    """Files of the program are marked."""
    frame = Names("/srv/me", "/srv/me/jobs", ["/srv/me/lib", ""]).frame(file, "score", 3)
    assert (frame.file, frame.is_own, frame.function, frame.line) == (name, is_own, "score", 3)


def test_a_file_that_was_cut_is_read_up_to_there(tmp_path: Path) -> None:
    """The process was killed while it wrote a line."""
    file = tmp_path / "7.stacks"
    file.write_bytes(
        PROCESS + b'["frame","job.py","main",3]\n["stack",0]\n["sample",1001,5,0,"running",null,1.0]\n["sam'
    )
    process = read(file)
    assert process is not None
    assert process.frames == [("job.py", "main", 3)]
    assert [(sample.at_ms, sample.stack, sample.weight) for sample in process.samples] == [(1001, 0, 1.0)]


def test_an_empty_file_is_no_process(tmp_path: Path) -> None:
    """The process was killed before it wrote anything."""
    file = tmp_path / "7.stacks"
    file.write_bytes(b"")
    assert read(file) is None
