"""What is said of samples that are not whole, and what a command waits for that has none."""

import json
import subprocess
import sys
from pathlib import Path

from spark_app.observe.stack_capture import StackCapture


def write_full(folder: Path, pid: int, *, is_full: bool = True) -> None:
    """The file of a Python process, which has reached its size, or has not."""
    process = ["process", "python_worker", pid, 5, "host", 52.6, 0, None, "/srv", "-c", [], "/usr"]
    ended = [["full"]] if is_full else []
    lines = [process, ["frame", "job.py", "score", 3], ["stack", 0], ["sample", 1, 1, 0, "running", 1, 1.0], *ended]
    text = "".join(f"{json.dumps(each)}\n" for each in lines)
    (folder / "python" / f"{pid}-1.stacks").write_text(text, encoding="utf-8")


def test_a_process_whose_file_is_full_is_named(tmp_path: Path) -> None:
    """One that runs for days has samples of its first part only."""
    capture = StackCapture(tmp_path / "stacks", 19)
    capture.variables()
    write_full(tmp_path / "stacks", 7)
    write_full(tmp_path / "stacks", 8, is_full=False)
    assert capture.write({}) == ["Python process 7 is sampled in part: its file is full"]


def test_a_command_that_is_not_sampled_does_not_wait_for_the_live_page() -> None:
    """What `observe` loads before it starts the command has no report in it."""
    shown = "print([name for name in sys.modules if name.startswith('spark_app.report')])"
    program = f"import sys, spark_app.observe.results; {shown}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
