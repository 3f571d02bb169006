"""The limits that several rules share, and those of how findings are judged."""

from typing import Final

from spark_app.eventlog.diagnoses.rule import MIB, Limit

JUDGEMENT: Final = {
    "cost_ratio": Limit(
        0.05,
        "A cause is reported if its estimated cost, over all its places, is at least this share of the application.",
        ge=0,
        le=1,
    ),
    "cost_ms": Limit(5000.0, "A cause with a lower cost is not reported, if its share is not large.", ge=0),
    "cost_large_ratio": Limit(
        0.2, "A cause with this share of the application is reported, however short that is.", ge=0, le=1
    ),
    "cost_most_ms": Limit(
        180_000.0,
        "A cause with at least this cost is reported, however long the application takes.",
        ge=0,
    ),
    "stream_batches": Limit(
        10,
        "Streams: a query with fewer batches is judged only for batches that are longer than its trigger, and for "
        "state in very many partitions.",
        ge=4,
    ),
}
CPU_UNMEASURED_RATIO: Final = Limit(
    0.5,
    "CPU starvation: the same where nobody measured the load of the host.",
    gt=0,
    le=1,
)
DISK_BYTES_PER_SECOND: Final = Limit(125 * MIB, "Throughput of a disk, to estimate the cost of spilling.", ge=1)
EXTERNAL_WAIT_RATIO: Final = Limit(
    0.5,
    "Tasks that wait for something outside Spark: that time over their run time, at least.",
    gt=0,
    le=1,
)
MEMORY_SAMPLES: Final = Limit(10, "Memory: samples that an executor reported, at least.", ge=1)
SKEW_RATIO: Final = Limit(3.16, "Partition skew: the longest task takes more than this times the median one.", ge=1)
SMALL_FILE_BYTES: Final = Limit(3 * MIB, "Small files: their mean size is below this.", ge=1)
SMALL_FILES: Final = Limit(100, "Small files: more files than this were read or written.", ge=1)
TINY_BATCH_MS: Final = Limit(10_000.0, "Tiny batches: less time from one batch to the next than this on average.", ge=1)
TINY_BATCH_ROWS: Final = Limit(1000.0, "Tiny batches: fewer rows of a batch than this on average.", ge=1)
