"""What is said of samples that are not whole."""

import json
from pathlib import Path

from spark_app.observe.stack_capture import StackCapture


def test_a_process_whose_file_is_full_is_named(tmp_path: Path) -> None:
    """One that runs for days has samples of its first part only."""
    capture = StackCapture(tmp_path / "stacks", 19)
    capture.variables()
    for pid, ended in ((7, [["full"]]), (8, [])):
        process = ["process", "python_worker", pid, 5, "host", 52.6, 0, None, "/srv", "-c", [], "/usr"]
        lines = [process, ["frame", "job.py", "score", 3], ["stack", 0], ["sample", 1, 1, 0, "running", 1, 1.0], *ended]
        text = "".join(f"{json.dumps(each)}\n" for each in lines)
        (tmp_path / "stacks" / "python" / f"{pid}-1.stacks").write_text(text, encoding="utf-8")
    assert capture.write({}) == ["Python process 7 is sampled in part: its file is full"]
