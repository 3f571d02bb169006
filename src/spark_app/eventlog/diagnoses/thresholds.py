"""The thresholds of the diagnoses: the keys of `config/diagnoses.yml`, with their defaults and sources.

Sources: DataFlint (github.com/dataflint/spark, its alert reducers), Dr. Elephant (github.com/linkedin/dr-elephant, its
heuristics); "project" marks a choice of this project.
"""

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from spark_app.settings import config_folder, load_pipeline_config

MIB: Final = 1024**2
GIB: Final = 1024**3


class Thresholds(BaseModel):
    """The threshold of each rule; times in milliseconds, sizes in bytes, shares from 0 to 1.

    Attributes:
        cost_ratio, cost_ms, cost_most_ms: A cause is reported if its cost over all its places is at least this share of
            the application; at least `cost_ms`, and at most `cost_most_ms`, are asked for. Project.
        skew_longest_ms, skew_ratio: Longest task at least (project; DataFlint has 5 s), and more than so many times
            the median (Dr. Elephant, severe; DataFlint has 10).
        skew_data_ratio: Data of that task over the mean of the others, from which the data is the cause. Project.
        tiny_tasks, tiny_median_ms: More tasks of a stage than this (project; DataFlint has 5000), with a median below
            this (DataFlint).
        few_tasks_stage_ms: A stage at least this long must have a task for each core. Project.
        disk_bytes_per_second: What a disk of a host reads or writes, to estimate what spilling costs. AWS gp3 baseline.
        gc_ratio: Garbage collection over the run time of tasks. Dr. Elephant, moderate.
        cpu_ratio: Time on a processor over the same and the time that tasks waited for one, below this. Project.
        external_wait_ratio: Time that tasks waited for something outside Spark over their run time, at least. Project:
            most of it.
        huge_bytes: Input, output or shuffle of one task. DataFlint.
        driver_gap_ms, driver_edge_ms, driver_gap_ratio: Time without a task within queries or between them, before the
            first or after the last query, and the share of the application's time of each. Project.
        idle_ratio, idle_core_ms: Idle share of all core time (DataFlint), idle core time (project): more than both.
        memory_over_ratio, memory_over_bytes: Highest use of an executor's heap below this (DataFlint), and the memory
            from which on it matters (project).
        memory_samples: Reports of an executor's heap that both rules need. Project.
        memory_under_ratio: Highest use of an executor's heap above this. DataFlint.
        small_files, small_file_bytes: More files than this, smaller than this on average. DataFlint.
        unfiltered_partitions, unfiltered_bytes: Partitions and bytes of a filtered scan without partition filter.
            Project.
        broadcast_bytes: A broadcast larger than this. Project: ten times Spark's default of
            `spark.sql.autoBroadcastJoinThreshold`; DataFlint has 1 GiB.
        broadcast_tiers: Pairs: a side below the first could be broadcast where the other is above the second.
            DataFlint, without its last pair (5 GiB, 1 TiB); its first pair has no second size.
        cross_join_pairs: Pairs of rows that a join makes. Project; DataFlint has 10 billion.
        python_udf_rows: Calls of Python functions, one by one. Project.
        stream_batches: Batches that rules about streams need, but for the one about triggers. Project.
        late_batches_ratio: Share of batches that are longer than the interval of their trigger, at least. Spark logs a
            warning for each (`ProcessingTimeExecutor.notifyBatchFallingBehind`); the share is the project's.
        behind_batches: Records that a query falls behind, in batches of its own. Project.
        stalled_batches, stalled_event_ms: Batches with newer rows and the same watermark, and how much newer. Project.
        tiny_batch_rows, tiny_batch_ms: Fewer rows of a batch on average, and less time from one to the next. Project.
        overhead_ratio: Time of batches outside of their work over the work, above this. Project.
        state_batches, state_growth_rows: Batches, and rows that state has grown by without losing one. Project.
        state_partitions_ratio, state_partition_rows: Partitions of state over slots, more than this, with fewer updated
            rows of each in a batch. Project.
        repeated_scans: Times that files are read, at least. Project.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cost_ratio: float = Field(default=0.05, ge=0, le=1)
    cost_ms: float = Field(default=5000, ge=0)
    cost_most_ms: float = Field(default=180_000, ge=0)
    skew_longest_ms: float = Field(default=2000, ge=0)
    skew_ratio: float = Field(default=3.16, ge=1)
    skew_data_ratio: float = Field(default=2, ge=1)
    tiny_tasks: int = Field(default=100, ge=1)
    tiny_median_ms: float = Field(default=500, ge=0)
    few_tasks_stage_ms: float = Field(default=3000, ge=0)
    disk_bytes_per_second: int = Field(default=125 * MIB, ge=1)
    gc_ratio: float = Field(default=0.10, gt=0, le=1)
    cpu_ratio: float = Field(default=0.50, gt=0, le=1)
    external_wait_ratio: float = Field(default=0.50, gt=0, le=1)
    huge_bytes: int = Field(default=5 * GIB, ge=1)
    driver_gap_ms: float = Field(default=10_000, ge=0)
    driver_edge_ms: float = Field(default=60_000, ge=0)
    driver_gap_ratio: float = Field(default=0.30, gt=0, le=1)
    idle_ratio: float = Field(default=0.50, gt=0, le=1)
    idle_core_ms: float = Field(default=3_600_000, ge=0)
    memory_over_ratio: float = Field(default=0.70, gt=0, le=1)
    memory_over_bytes: int = Field(default=4 * GIB, ge=0)
    memory_samples: int = Field(default=10, ge=1)
    memory_under_ratio: float = Field(default=0.95, gt=0, le=1)
    small_files: int = Field(default=100, ge=1)
    small_file_bytes: int = Field(default=3 * MIB, ge=1)
    unfiltered_partitions: int = Field(default=100, ge=2)
    unfiltered_bytes: int = Field(default=10 * GIB, ge=1)
    broadcast_bytes: int = Field(default=100 * MIB, ge=1)
    broadcast_tiers: tuple[tuple[int, int], ...] = (
        (10 * MIB, 10 * MIB),
        (100 * MIB, 10 * GIB),
        (1000 * MIB, 300 * GIB),
    )
    cross_join_pairs: float = Field(default=1e7, ge=1)
    python_udf_rows: int = Field(default=1000, ge=1)
    stream_batches: int = Field(default=10, ge=4)
    late_batches_ratio: float = Field(default=0.20, gt=0, le=1)
    behind_batches: float = Field(default=3, gt=0)
    stalled_batches: int = Field(default=10, ge=1)
    stalled_event_ms: float = Field(default=300_000, ge=0)
    tiny_batch_rows: float = Field(default=1000, ge=1)
    tiny_batch_ms: float = Field(default=10_000, ge=1)
    overhead_ratio: float = Field(default=1, gt=0)
    state_batches: int = Field(default=20, ge=4)
    state_growth_rows: int = Field(default=100_000, ge=1)
    state_partitions_ratio: float = Field(default=4, gt=0)
    state_partition_rows: float = Field(default=1000, ge=1)
    repeated_scans: int = Field(default=3, ge=2)


def load_thresholds(folder: Path | None = None) -> Thresholds:
    """The thresholds of `diagnoses.yml` in a configuration folder; a key that is not there has its default.

    Raises:
        ConfigError: A key is unknown or wrong, or the file cannot be read.
    """
    return load_pipeline_config("diagnoses", Thresholds, folder or config_folder())
