"""A worker of PySpark that no longer looks through what it has imported: `spark.python.worker.module pyspark_frozen`.

PySpark's daemon collects garbage after every task, over all objects of numpy, pandas and pyarrow, which takes longer
than a small task. What is there after the first task, and what the third has loaded lazily, is frozen: collections
leave it alone. The module leans on `pyspark.worker.main`, which is PySpark's own and may change; hence it is opt-in.
"""

import gc
from typing import IO, Any, Final

from pyspark import worker
from pyspark.worker_util import get_sock_file_to_executor

WARM_AFTER: Final = (1, 3)
"""Tasks after which a worker freezes what it holds."""
_done = 0


def main(infile: IO[Any], outfile: IO[Any]) -> None:
    """Runs one task, as PySpark's own worker does."""
    global _done  # noqa: PLW0603 - a worker is a process, and counts its tasks
    worker.main(infile, outfile)
    _done += 1
    if _done in WARM_AFTER:
        gc.collect()
        gc.freeze()


if __name__ == "__main__":  # where there is no daemon
    with get_sock_file_to_executor() as file:
        main(file, file)
