"""The real program in processes of its own: run to the end, killed, or held still at chosen moments."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.integration.home import DAY, Home
from tests.polling import poll_until

PATIENCE_SECONDS: Final = 180
PAUSE_SECONDS: Final = 0.002
QUICK: Final = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def make_quick(home: Home) -> None:
    """Lets Spark of a home's processes spend as little as it can on a handful of rows."""
    path = home.settings.config / "spark" / "spark-defaults.conf"
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if line.partition(" ")[0] not in QUICK]
    path.write_text("\n".join([*kept, *(f"{key} {value}" for key, value in QUICK.items())]) + "\n", encoding="utf-8")


@contextmanager
def started(home: Home, *, stderr: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """`spark-app etl` at work on a home; it does not outlive the block."""
    command = [sys.executable, "-m", "app", "etl", "--date", DAY.isoformat(), "--config", str(home.settings.config)]
    variables = {"SPARK_APP_HOME": str(home.folder), "SPARK_APP_RAW__PATH": "raw"} | variables
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


def kill_when(home: Home, appears: str, *, stderr: Path) -> None:
    """Starts `spark-app etl` and kills it with SIGKILL as soon as a new file of a name is in the warehouse.

    Fails if the program ends before. Comes back when the JVM is gone, which ends by itself.
    """
    before = _files(home, appears)
    with started(home, stderr=stderr) as process:
        _wait_for(home, appears, process, before)
        children = _children(process.pid)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, f"ended before {appears}: {stderr.read_text(encoding='utf-8')}"
    poll_until(
        lambda: not any(_is_alive(child) for child in children),
        f"the end of {children}",
        seconds=PATIENCE_SECONDS,
    )


def without_java(home: Home, appears: str, *, stderr: Path) -> tuple[int, str]:
    """How `spark-app etl` ends whose JVM is killed as soon as a new file of a name is in the warehouse."""
    before = _files(home, appears)
    with started(home, stderr=stderr) as process:
        _wait_for(home, appears, process, before)
        for child in _children(process.pid):
            os.kill(child, signal.SIGKILL)
        code = process.wait(PATIENCE_SECONDS)
    return code, stderr.read_text(encoding="utf-8")


def left_behind(home: Home, moments: Sequence[str], folder: Path) -> dict[str, Path]:
    """What a `spark-app etl` leaves on disk if it is killed at each of some moments: a copy of the home for each.

    The program runs once. When a new file of the next name is in the warehouse, all its processes are held still
    (SIGSTOP), the home folder is copied, and they go on: a killed process leaves just the files that are there.
    """
    before = {moment: _files(home, moment) for moment in moments}
    copies = {}
    with started(home, stderr=folder / "stderr") as process:
        for number, moment in enumerate(moments):
            _wait_for(home, moment, process, before[moment])
            processes = [process.pid, *_children(process.pid)]
            for one in processes:
                os.kill(one, signal.SIGSTOP)
            copies[moment] = Path(shutil.copytree(home.folder, folder / str(number)))
            for one in processes:
                os.kill(one, signal.SIGCONT)
        code = process.wait(PATIENCE_SECONDS)
    assert code == 0, (folder / "stderr").read_text(encoding="utf-8")
    return copies


def _wait_for(home: Home, appears: str, process: subprocess.Popen[str], before: set[str]) -> None:
    poll_until(
        lambda: bool(_files(home, appears) - before) or process.poll() is not None,
        f"a new file {appears}",
        seconds=PATIENCE_SECONDS,
        pause=PAUSE_SECONDS,
    )
    assert process.poll() is None, f"ended before {appears}"


def _files(home: Home, pattern: str) -> set[str]:
    return {str(path) for path in Path(home.settings.warehouse_path).glob(pattern)}


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return not re.search(r"\) [ZX] ", state)
