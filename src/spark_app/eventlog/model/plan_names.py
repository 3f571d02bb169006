"""What Spark writes in plans, where several modules compare with it: names of operators, of their numbers, of metadata.

A name that one module alone knows stands there.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

EXCHANGE: Final = "Exchange"
"""Distributes rows over tasks: a shuffle."""
BROADCAST_EXCHANGE: Final = "BroadcastExchange"
REUSED_EXCHANGE: Final = "ReusedExchange"
"""Repeats an exchange of either kind that stands elsewhere in the same plan."""
SHUFFLE_READ: Final = "AQEShuffleRead"
"""Merges or splits the partitions of a shuffle, by adaptive execution."""
SHUFFLED_JOINS: Final = ("SortMergeJoin", "ShuffledHashJoin")
CARTESIAN_PRODUCT: Final = "CartesianProduct"
IN_MEMORY_TABLE_SCAN: Final = "InMemoryTableScan"
CACHE_SCANS: Final = (IN_MEMORY_TABLE_SCAN, "Scan In-memory table")
COMMAND: Final = "Execute "
"""What the name of an operator that runs a command begins with: `Execute InsertIntoHadoopFsRelationCommand`."""
INSERT_INTO_FILES: Final = "InsertIntoHadoopFsRelationCommand"

OUTPUT_ROWS: Final = "number of output rows"
DATA_SIZE: Final = "data size"
FILES_READ: Final = "number of files read"
FILE_BYTES_READ: Final = "size of files read"
WRITTEN_BYTES: Final = "written output"
SORT_TIME: Final = "sort time"
SHUFFLE_WRITE_TIME: Final = "shuffle write time"
PYTHON_TIME: Final = "time to run Python workers"
"""Milliseconds that tasks spent in Python workers, over all stages of the query so far (`PythonSQLMetrics`)."""
PYTHON_TIMES: Final = ("time to execute Python code", PYTHON_TIME)
"""The metrics of task time in Python workers; Spark 3.5 has none."""
SCAN_TIME: Final = "scan time"
"""The same in columnar scans of files."""

LOCATION: Final = "Location"
PARTITION_FILTERS: Final = "PartitionFilters"
PATHS: Final = r"\w+\(\d+ paths?\)\["
"""A pattern of what stands before the paths of a location: `InMemoryFileIndex(1 paths)[file:/data/sales]`."""
DELTA_LOG: Final = "_delta_log"
"""The folder of a Delta table that has its transaction log."""
SESSION_CATALOG: Final = "spark_catalog."
"""What the name of a table begins with that is in the catalog of the session."""
SCAN_OF_TABLE: Final = rf"(?:Batch)?Scan (?:\w+ )?(?:{re.escape(SESSION_CATALOG)})?([\w-]+(?:\.[\w-]+)+)"
"""A pattern of the name of an operator that scans a table of a catalog; its group is the table."""

EXPRESSION_ID: Final = re.compile(r"#\d+L?")
"""What Spark adds to the name of a column, another number in each query: `price#12L`."""


def pattern_of_nodes(names: Iterable[str]) -> re.Pattern[bytes]:
    """Finds operators whose names begin with one of these, in a plan as the log has it: decoding it takes longer."""
    return re.compile(rf'"nodeName":\s*"(?:{"|".join(map(re.escape, names))})'.encode())


def parts(text: str) -> Iterator[str]:
    """The parts of a list of expressions, between the commas that are in no brackets."""
    depth = start = 0
    for number, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth:
            yield text[start:number].strip()
            start = number + 1
    if text[start:].strip():
        yield text[start:].strip()
