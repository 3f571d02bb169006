"""The thresholds of the diagnoses, which are the keys of `config/diagnoses.yml`, with their defaults and meanings.

The docstrings of the rules name their sources: DataFlint (github.com/dataflint/spark, its alert reducers) and Dr.
Elephant (github.com/linkedin/dr-elephant, its heuristics); "project" marks a choice of this project.
"""

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from spark_app.settings import config_folder, load_pipeline_config

MIB: Final = 1024**2
GIB: Final = 1024**3


class Thresholds(BaseModel):
    """The threshold of each rule; times in milliseconds, sizes in bytes, shares from 0 to 1.

    The text below a threshold is its meaning in docs/reference.md and in the file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cost_ratio: float = Field(default=0.05, ge=0, le=1)
    """A cause is reported if its estimated cost, over all its places, is at least this share of the application."""
    cost_ms: float = Field(default=5000, ge=0)
    """A cause with a lower cost is not reported."""
    cost_most_ms: float = Field(default=180_000, ge=0)
    """A cause with at least this cost is reported, however long the application takes."""
    skew_longest_ms: float = Field(default=2000, ge=0)
    """Partition skew: the longest task takes at least this."""
    skew_ratio: float = Field(default=3.16, ge=1)
    """Partition skew: the longest task takes more than this times the median one."""
    skew_data_ratio: float = Field(default=2, ge=1)
    """Partition skew: data of that task over the mean of the others; above this, data and not the host is the cause."""
    tiny_tasks: int = Field(default=100, ge=1)
    """Tiny tasks: a stage has more tasks than this."""
    tiny_median_ms: float = Field(default=500, ge=0)
    """Tiny tasks: their median is below this."""
    few_tasks_stage_ms: float = Field(default=3000, ge=0)
    """Too few tasks: the stage takes at least this."""
    disk_bytes_per_second: int = Field(default=125 * MIB, ge=1)
    """Throughput of a disk, to estimate the cost of spilling."""
    gc_ratio: float = Field(default=0.10, gt=0, le=1)
    """Garbage collection over the run time of tasks, at least."""
    cpu_ratio: float = Field(default=0.67, gt=0, le=1)
    """CPU starvation: time on a processor over the same and the wait for one, below this on a measured host."""
    cpu_unmeasured_ratio: float = Field(default=0.50, gt=0, le=1)
    """CPU starvation: the same where nobody measured the load of the host."""
    external_wait_ratio: float = Field(default=0.50, gt=0, le=1)
    """Tasks that wait for something outside Spark: that time over their run time, at least."""
    huge_bytes: int = Field(default=5 * GIB, ge=1)
    """Huge partitions: input, output or shuffle of one task."""
    driver_gap_ms: float = Field(default=10_000, ge=0)
    """Driver gaps: time without a running task within queries, or between them, at least."""
    driver_batch_gap_ms: float = Field(default=5000, ge=0)
    """Driver gaps: the longest time between queries of a program that nobody types into, at least."""
    driver_edge_ms: float = Field(default=60_000, ge=0)
    """Driver gaps: time before the first query or after the last one, at least."""
    driver_gap_ratio: float = Field(default=0.30, gt=0, le=1)
    """Driver gaps: that time over the duration of the application, at least."""
    collected_bytes: int = Field(default=100 * MIB, ge=1)
    """Collected rows: bytes of the results of an action's tasks, at least."""
    idle_ratio: float = Field(default=0.50, gt=0, le=1)
    """Idle cores: share of core time, more than this."""
    idle_core_ms: float = Field(default=3_600_000, ge=0)
    """Idle cores: idle core time, more than this."""
    missing_executors_ms: float = Field(default=30_000, ge=0)
    """Missing executors: a job waits for the first one, or an application has too few, for at least this."""
    memory_over_ratio: float = Field(default=0.70, gt=0, le=1)
    """Too much memory: the highest use of an executor's heap is below this."""
    memory_over_bytes: int = Field(default=4 * GIB, ge=0)
    """Too much memory: an executor has at least this."""
    memory_samples: int = Field(default=10, ge=1)
    """Memory: samples that an executor reported, at least."""
    memory_under_ratio: float = Field(default=0.95, gt=0, le=1)
    """Too little memory: the highest use of an executor's heap is above this."""
    stream_batches: int = Field(default=10, ge=4)
    """Streams: a query with fewer batches is not judged, but for batches that are longer than its trigger."""
    late_batches_ratio: float = Field(default=0.20, gt=0, le=1)
    """Batch longer than its trigger: share of such batches, at least."""
    behind_batches: float = Field(default=3, gt=0)
    """Falling behind: growth of the lag, in batches, at least."""
    stalled_batches: int = Field(default=10, ge=1)
    """Stalled watermark: batches with newer rows and the same watermark, at least."""
    stalled_event_ms: float = Field(default=300_000, ge=0)
    """Stalled watermark: how much newer these rows are, at least."""
    tiny_batch_rows: float = Field(default=1000, ge=1)
    """Tiny batches: fewer rows of a batch than this on average."""
    tiny_batch_ms: float = Field(default=10_000, ge=1)
    """Tiny batches: less time from one batch to the next than this on average."""
    overhead_ratio: float = Field(default=1, gt=0)
    """Batch overhead: time of batches outside of their work over the work, more than this."""
    state_batches: int = Field(default=20, ge=4)
    """Growing state: batches, at least."""
    state_growth_rows: int = Field(default=100_000, ge=1)
    """Growing state: rows gained, at least."""
    state_partitions_ratio: float = Field(default=4, gt=0)
    """Many state partitions: partitions over slots, more than this."""
    state_partition_rows: float = Field(default=1000, ge=1)
    """Many state partitions: updated rows of a partition in a batch, fewer than this."""
    small_files: int = Field(default=100, ge=1)
    """Small files: more files than this were read or written."""
    small_file_bytes: int = Field(default=3 * MIB, ge=1)
    """Small files: their mean size is below this."""
    unfiltered_partitions: int = Field(default=100, ge=2)
    """Unfiltered scan: partitions that a filtered scan read, at least."""
    unfiltered_bytes: int = Field(default=10 * GIB, ge=1)
    """Unfiltered scan: bytes that it read, at least, where the plan does not count the rows that passed it."""
    broadcast_bytes: int = Field(default=100 * MIB, ge=1)
    """Large broadcast: its size is above this."""
    broadcast_tiers: tuple[tuple[int, int], ...] = (
        (10 * MIB, 10 * MIB),
        (100 * MIB, 10 * GIB),
        (1000 * MIB, 300 * GIB),
    )
    """Sort-merge join: one side is below the first size and the other above the second, in one of these pairs."""
    cross_join_pairs: float = Field(default=1e7, ge=1)
    """Cross join: pairs of rows produced, at least."""
    python_udf_rows: int = Field(default=1000, ge=1)
    """Python functions row by row: calls, at least."""
    repeated_scans: int = Field(default=3, ge=2)
    """Repeated scans: how often the same files were read, at least."""
    repeated_work: int = Field(default=2, ge=2)
    """Missing cache: how many queries computed the same from the same rows, at least."""
    repeated_stages: int = Field(default=3, ge=2)
    """Missing cache: how many stages of RDDs one line of the program ran from the same RDDs, at least."""
    explode_ratio: float = Field(default=5, ge=1)
    """Explode: rows behind it over those before it, at least."""
    explode_saved_ratio: float = Field(default=0.6, ge=0, le=1)
    """Explode: what is saved of the time of its operators by computing within the row, at least."""
    plan_operators: int = Field(default=100, ge=1)
    """Slow planning: operators of a large plan, at least."""
    plan_columns: int = Field(default=100, ge=1)
    """Slow planning: columns of an operator of a large plan, at least."""
    plan_bytes: int = Field(default=64 * 1024, ge=1)
    """Slow planning: bytes that describe a large plan in the log, at least."""
    large_plan_ms: float = Field(default=1500, ge=0)
    """Slow planning: the time that a large plan takes anyway."""
    first_plan_ms: float = Field(default=2500, ge=0)
    """Slow planning: the same of the first plan of an application."""


def load_thresholds(folder: Path | None = None) -> Thresholds:
    """The thresholds of `diagnoses.yml` in a configuration folder; a key that is not there has its default.

    Raises:
        ConfigError: A key is unknown or wrong, or the file cannot be read.
    """
    return load_pipeline_config("diagnoses", Thresholds, folder or config_folder())
