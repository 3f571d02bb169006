"""Programs whose executors Kubernetes kills, evicts, deletes, or does not start: `pods.py`.

They run in driver pods, know nothing of this project, and do the same whether the cause is there or not: what makes it
one is in the settings and in what `record_pods` does to the cluster. Their folder is a volume that driver and executors
share: what must happen once leaves a folder there. `spark.recorded.cause` names the program.
"""

import threading
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark import SparkContext, TaskContext

RUNNING: Final = "two tasks run"
"""What a program says when both of its executors work."""
TASKS: Final = 12
TASK_SECONDS: Final = 3.0
MIB: Final = 1024**2


def main(folder: Path) -> None:
    """Runs a job of some tasks, and says when they run."""
    context = SparkContext()
    cause = context.getConf().get("spark.recorded.cause")
    told = threading.Thread(target=tell_when_running, args=(context,), daemon=True)
    told.start()
    if cause == "driver-evicted":
        fill(Path("/scratch/collected"), 100)
    task = TASK_OF.get(str(cause), waits)
    done = context.parallelize(range(TASKS), TASKS).mapPartitionsWithIndex(
        lambda index, rows: task(index, rows, folder)
    )
    print("done:", sum(done.collect()))  # noqa: T201
    context.stop()


def tell_when_running(context: SparkContext) -> None:
    """Waits until two tasks run at once."""
    tracker = context.statusTracker()
    while True:
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        if sum(stage.numActiveTasks for stage in stages if stage is not None) >= 2:
            print(RUNNING, flush=True)  # noqa: T201
            return
        time.sleep(0.2)


def waits(index: int, rows: Iterable[int], folder: Path) -> Iterator[int]:
    """Takes its time, as a service that is asked would."""
    time.sleep(TASK_SECONDS)
    yield from rows


def keeps_rows(index: int, rows: Iterable[int], folder: Path, *, mebibytes: int) -> Iterator[int]:
    """Holds memory in Python for some seconds: once, as a partition with a hot key would."""
    if index == 3 and is_first(folder, "kept rows"):
        kept = [bytes(MIB // 4) + bytes([number % 256]) * (3 * MIB // 4) for number in range(mebibytes)]
        time.sleep(TASK_SECONDS)
        yield len(kept) - mebibytes
    yield from waits(index, rows, folder)


def fills_disk(index: int, rows: Iterable[int], folder: Path) -> Iterator[int]:
    """Leaves 300 MiB on the local disk of the executor, once, and goes on."""
    if index == 3 and is_first(folder, "filled a disk"):
        fill(Path("/scratch/spilled"), 300)
        time.sleep(10 * TASK_SECONDS)
    yield from waits(index, rows, folder)


def fill(file: Path, mebibytes: int) -> None:
    """Writes a file."""
    with file.open("wb") as opened:
        for _ in range(mebibytes):
            opened.write(bytes(MIB))


def is_first(folder: Path, what: str) -> bool:
    """Whether no task of this program did it before."""
    try:
        (folder / what).mkdir()
    except FileExistsError:
        return False
    return TaskContext.get() is not None


def waits_long(index: int, rows: Iterable[int], folder: Path) -> Iterator[int]:
    """Takes longer than a kubelet looks away: it measures volumes once in a minute."""
    time.sleep(10 * TASK_SECONDS)
    yield from rows


TASK_OF: Final[dict[str, Any]] = {
    "out-of-memory": partial(keeps_rows, mebibytes=400),
    "python-out-of-memory": partial(keeps_rows, mebibytes=800),
    "evicted": fills_disk,
    "driver-evicted": waits_long,
}

if __name__ == "__main__":
    main(Path(__file__).parent)
