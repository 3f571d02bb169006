"""The real program in processes of its own: run to the end, killed, or held still at chosen moments."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.integration.home import DAY, Home
from tests.polling import poll_until

PATIENCE_SECONDS: Final = 400
PAUSE_SECONDS: Final = 0.002
ETL: Final = ("etl", "--date", DAY.isoformat())
QUICK: Final = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.driver.memory": "1g",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def make_quick(home: Home, **changes: str) -> None:
    """Lets Spark of a home's processes spend as little as it can on a handful of rows; changes are more properties."""
    quick = QUICK | {name.replace("_", "."): value for name, value in changes.items()}
    path = home.settings.config / "spark" / "spark-defaults.conf"
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if line.partition(" ")[0] not in quick]
    path.write_text("\n".join([*kept, *(f"{key} {value}" for key, value in quick.items())]) + "\n", encoding="utf-8")


@contextmanager
def started(
    home: Home, *, stderr: Path, command: Sequence[str] = ETL, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    """A command of `spark-app` at work on a home; it does not outlive the block."""
    command = [sys.executable, "-m", "spark_app", *command, "--config", str(home.settings.config)]
    variables = home.variables | variables
    with stderr.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command, env=os.environ | variables, stdout=subprocess.DEVNULL, stderr=errors, text=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def ended(home: Home, *, stderr: Path, **variables: str) -> tuple[int, str]:
    """The exit code of `spark-app etl` and what it says on standard error."""
    with started(home, stderr=stderr, **variables) as process:
        code = process.wait(PATIENCE_SECONDS)
    return code, stderr.read_text(encoding="utf-8")


def kill_when(home: Home, appears: str, *, stderr: Path, command: Sequence[str] = ETL) -> None:
    """Starts a command of `spark-app` and kills it with SIGKILL as soon as a new file of a name is in the warehouse.

    Fails if the program ends before. Comes back when the JVM is gone, which ends by itself.

    Args:
        home: What the program works on.
        appears: The name of the file.
        stderr: Where the program's standard error goes.
        command: What it does.
    """
    before = _files(home, appears)
    with started(home, stderr=stderr, command=command) as process:
        _wait_for(home, appears, process, before)
        children = children_of(process.pid)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, f"ended before {appears}: {stderr.read_text(encoding='utf-8')}"
    poll_until(
        lambda: not any(is_alive(child) for child in children),
        f"the end of {children}",
        seconds=PATIENCE_SECONDS,
    )


def without_java(home: Home, appears: str, *, stderr: Path) -> tuple[int, str]:
    """How `spark-app etl` ends whose JVM is killed as soon as a new file of a name is in the warehouse."""
    before = _files(home, appears)
    with started(home, stderr=stderr) as process:
        _wait_for(home, appears, process, before)
        for child in children_of(process.pid):
            os.kill(child, signal.SIGKILL)
        code = process.wait(PATIENCE_SECONDS)
    return code, stderr.read_text(encoding="utf-8")


def left_behind(home: Home, moments: Sequence[str], folder: Path, *, command: Sequence[str] = ETL) -> dict[str, Path]:
    """What a command of `spark-app` leaves on disk if it is killed at some moments: a copy of the home for each.

    The program runs once. When a new file of the next name is in the warehouse, all its processes are held still
    (SIGSTOP), the home folder is copied, and they go on: a killed process leaves just the files that are there.
    """
    before = {moment: _files(home, moment) for moment in moments}
    copies = {}
    with started(home, stderr=folder / "stderr", command=command) as process:
        for number, moment in enumerate(moments):
            _wait_for(home, moment, process, before[moment])
            copies[moment] = _copy_still(home, process, folder / str(number))
        code = process.wait(PATIENCE_SECONDS)
    assert code == 0, (folder / "stderr").read_text(encoding="utf-8")
    return copies


def _copy_still(home: Home, process: subprocess.Popen[str], folder: Path) -> Path:
    """A copy of the home folder while a program and its JVM are held still (SIGSTOP); then they go on."""
    processes = [process.pid, *children_of(process.pid)]
    for one in processes:
        os.kill(one, signal.SIGSTOP)
    shutil.copytree(home.folder, folder)
    for one in processes:
        os.kill(one, signal.SIGCONT)
    return folder


def _wait_for(home: Home, appears: str, process: subprocess.Popen[str], before: set[str]) -> None:
    poll_until(
        lambda: bool(_files(home, appears) - before) or process.poll() is not None,
        f"a new file {appears}",
        seconds=PATIENCE_SECONDS,
        pause=PAUSE_SECONDS,
    )
    assert process.poll() is None, f"ended before {appears}"


def _files(home: Home, pattern: str) -> set[str]:
    return {str(path) for path in home.tables.glob(pattern)}


def children_of(pid: int) -> list[int]:
    """The processes that the threads of a process have started; none if it does not run."""
    texts = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            texts.append(task.read_text(encoding="ascii"))
    return [int(child) for text in texts for child in text.split()]


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return not re.search(r"\) [ZX] ", state)
