"""What a program logs is collected by the hook that it starts with, and what it prints stays as it is."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.observe import annotations
from spark_app.observe.python_start import with_hook
from spark_app.telemetry import python_logs

PROGRAMS: Final = {
    "last resort": """
import logging
log = logging.getLogger("mine")
log.warning("rate is %d of %s", 7, "nine")
log.info("too fine")
""",
    "basicConfig": """
import logging
log = logging.getLogger("mine")
logging.basicConfig(level="INFO", format="%(levelname)s|%(message)s")
log.info("rate is 7 of nine")
""",
    "dictConfig": """
import logging.config
handler = {"class": "logging.StreamHandler"}
logging.getLogger("mine").warning("rate is 7 of nine")
logging.config.dictConfig({"version": 1, "handlers": {"out": handler}, "root": {"handlers": ["out"]}})
logging.getLogger("other").warning("after")
""",
    "fileConfig": """
import logging.config, pathlib
logging.getLogger("mine").warning("rate is 7 of nine")
pathlib.Path("log.ini").write_text(
    "[loggers]\\nkeys=root\\n[handlers]\\nkeys=out\\n[formatters]\\nkeys=\\n"
    "[logger_root]\\nlevel=DEBUG\\nhandlers=out\\n[handler_out]\\nclass=StreamHandler\\nargs=(sys.stdout,)\\n"
)
logging.config.fileConfig("log.ini")
logging.getLogger("mine").warning("disabled")
logging.getLogger("other").debug("after")
""",
    "handlers, levels and filters of its own": """
import logging, sys
log = logging.getLogger("mine.sub")
log.propagate, handler = False, logging.StreamHandler(sys.stdout)
handler.addFilter(lambda record: "secret" not in record.getMessage())
log.setLevel(logging.DEBUG)
log.addHandler(handler)
log.debug("fine")
log.error("secret to the handler")
log.addFilter(lambda record: False)
log.error("secret to all")
sys.exit(7)
""",
    "a queue": """
import logging.handlers, queue
records = queue.Queue()
listener = logging.handlers.QueueListener(records, logging.StreamHandler())
listener.start()
log = logging.getLogger("mine")
log.addHandler(logging.handlers.QueueHandler(records))
log.warning("rate is 7 of nine")
listener.stop()
""",
    "arguments that do not fit": """
import logging
logging.getLogger("mine").warning("rate is %d", "nine")
""",
    "an exception": """
import logging
try:
    {}["key"]
except KeyError:
    logging.getLogger("mine").exception("no key")
""",
    "threads and a fork": """
import logging, os, threading
log = logging.getLogger("mine")
threads = [threading.Thread(target=log.warning, args=("thread %d", number)) for number in range(20)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
child = os.fork()
if child == 0:
    log.warning("child")
    os._exit(0)
os.waitpid(child, 0)
""",
    "uncaught": """
raise RuntimeError("password=hunter2 is wrong")
""",
}


def ran(folder: Path, program: str, *, is_observed: bool, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program after it ran, with the hook or without; it is the driver of a launch."""
    (folder / "job.py").write_text(program, encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], python_logs.LAUNCH: "launch-1"} | variables
    if is_observed:
        environment = with_hook(environment, folder / "hook", folder)
    command = [sys.executable, "job.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def printed(ended: subprocess.CompletedProcess[str]) -> list[str]:
    """What a program printed on standard error, in any order of its threads, without lines of stacks."""
    return sorted(line for line in ended.stderr.splitlines() if not line.startswith(" "))


def lines(folder: Path) -> list[dict[str, Any]]:
    """What was collected."""
    return [json.loads(line) for line in (folder / "launch-1.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_output_and_exit_code_are_those_of_the_program(tmp_path: Path, name: str) -> None:
    """Whatever it does with its handlers; the stack of a record that cannot be formatted has a line more."""
    plain = ran(tmp_path, PROGRAMS[name], is_observed=False)
    observed = ran(tmp_path, PROGRAMS[name], is_observed=True)
    assert (observed.returncode, observed.stdout) == (plain.returncode, plain.stdout)
    assert printed(observed) == printed(plain)
    assert lines(tmp_path)


def test_a_record_has_its_level_logger_and_line(tmp_path: Path) -> None:
    """Only what the loggers let through."""
    ran(tmp_path, PROGRAMS["last resort"], is_observed=True)
    (line,) = lines(tmp_path)
    assert {
        "level": "WARN",
        "logger": "mine",
        "msg": "rate is 7 of nine",
        "code.line.number": 4,
    }.items() <= line.items()
    assert line["code.file.path"].endswith("job.py")


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("fileConfig", ["rate is 7 of nine", "after"]),
        ("handlers, levels and filters of its own", ["fine", "secret to the handler"]),
        ("a queue", ["rate is 7 of nine"]),
    ],
)
def test_each_record_that_a_logger_lets_through_is_collected_once(
    tmp_path: Path, name: str, messages: list[str]
) -> None:
    """Whatever handlers do with it; not what a logger drops, or one that is disabled."""
    ran(tmp_path, PROGRAMS[name], is_observed=True)
    assert [line["msg"] for line in lines(tmp_path)] == messages


def test_records_of_threads_and_children_are_whole(tmp_path: Path) -> None:
    """A child has no lock of its parent."""
    ran(tmp_path, PROGRAMS["threads and a fork"], is_observed=True)
    assert sorted(line["msg"] for line in lines(tmp_path)) == sorted(
        ["child", *(f"thread {number}" for number in range(20))]
    )


def test_what_ends_a_program_is_collected_without_its_secrets(tmp_path: Path) -> None:
    """It says why Spark did not start, where it is that."""
    ran(tmp_path, PROGRAMS["uncaught"], is_observed=True)
    content = (tmp_path / "launch-1.jsonl").read_bytes()
    assert b"hunter2" not in content
    assert annotations.last_error(content.splitlines()) == "RuntimeError: password=(redacted) is wrong"


def test_a_program_without_spark_leaves_nothing(tmp_path: Path) -> None:
    """Its log is nobody's business."""
    ran(tmp_path, PROGRAMS["last resort"], is_observed=True, **{python_logs.LAUNCH: ""})
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_driver_of_the_stack_has_the_trace_of_its_application(tmp_path: Path) -> None:
    """In a file that the collector takes for one of a driver."""
    ran(tmp_path, PROGRAMS["last resort"], is_observed=True, **{python_logs.LAUNCH: "", python_logs.TRACE: "ab" * 16})
    (file,) = tmp_path.glob("driver-*-python.jsonl")
    assert json.loads(file.read_bytes())["trace_id"] == "ab" * 16


def test_a_driver_in_a_pod_writes_to_its_log(tmp_path: Path) -> None:
    """At once, with the trace, and beside what the program writes itself; no file is left."""
    (tmp_path / "job.py").write_text(PROGRAMS["last resort"], encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], python_logs.TRACE: "ab" * 16}
    environment = with_hook(environment, tmp_path / "hook", Path("/proc/self/fd/1"))
    ended = subprocess.run(
        [sys.executable, "job.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    line = json.loads(ended.stdout)
    assert (line["trace_id"], line["msg"], line["level"]) == ("ab" * 16, "rate is 7 of nine", "WARN")
    assert ended.stderr == "rate is 7 of nine\n"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["hook", "job.py"]


def test_a_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest lines are kept, in two files."""
    program = (
        'import logging\nfor number in range(9000):\n    logging.getLogger("mine").error("x" * 999 + str(number))\n'
    )
    ran(tmp_path, program, is_observed=True)
    sizes = [file.stat().st_size for file in tmp_path.glob("launch-1.jsonl*")]
    assert sum(sizes) < 3 * python_logs.MAX_BYTES
    assert lines(tmp_path)[-1]["msg"].endswith("8999")
