"""From when on something is worth a finding: the keys of `config/diagnoses.yml`, with their defaults and sources.

Sources: DataFlint (github.com/dataflint/spark, its alert reducers), Dr. Elephant (github.com/linkedin/dr-elephant, its
heuristics); "ours" is a judgement of this project: what costs less is nobody's problem at night.
"""

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from app.settings import config_folder, load_pipeline_config

MIB: Final = 1024**2
GIB: Final = 1024**3


class Thresholds(BaseModel):
    """When each rule speaks; times in milliseconds, sizes in bytes, shares from 0 to 1.

    Attributes:
        cost_ms: A finding whose cost is known and below this is none. Ours.
        skew_longest_ms, skew_ratio: Longest task at least, and more than so many times the median. DataFlint.
        skew_data_ratio: Data of that task over the mean of the others, from which it is the data. Ours.
        tiny_tasks, tiny_median_ms: More tasks than this, with a median below this. DataFlint.
        few_tasks_stage_ms: A stage at least this long must have a task for each core. Ours.
        spill_bytes: Spilled to disk by a stage. Ours.
        disk_bytes_per_second: What a disk of a host reads or writes, to estimate what spilling costs. AWS gp3 baseline.
        gc_ratio: Garbage collection over the run time of tasks. Dr. Elephant, moderate.
        failed_ratio: Failed task attempts of a stage, from which they are a warning. Dr. Elephant, low.
        huge_bytes: Input, output or shuffle of one task. DataFlint.
        driver_gap_ms, driver_gap_ratio: Time without a task, and its share of the application's. Ours.
        idle_ratio, idle_core_ms: Idle share of all core time (DataFlint), idle core time (ours): more than both.
        memory_over_ratio, memory_over_bytes: Highest use of an executor's heap below this (DataFlint), and the memory
            from which on it matters (ours).
        memory_samples: Reports of an executor's heap that there must be, for both. Ours.
        memory_under_ratio: Highest use of an executor's heap above this. DataFlint.
        small_files, small_file_bytes: More files than this, smaller than this on average. DataFlint.
        unfiltered_partitions, unfiltered_bytes: Partitions and bytes of a filtered scan without partition filter. Ours.
        broadcast_bytes: A broadcast larger than this. DataFlint.
        broadcast_tiers: Pairs: a side below the first could be broadcast where the other is above the second.
            DataFlint; that the other must be above 100 MiB is ours, and to leave out its last pair (5 GiB, 1 TiB).
        cross_join_pairs: Pairs of rows that a join makes. Ours; DataFlint has ten times as many.
        python_udf_rows: Calls of Python functions, one by one. Ours.
        repeated_scans, repeated_scan_bytes: Times that files are read, and bytes read again, at least. Ours.
        cache_fill_ms: Time of the tasks that filled a cache, at least. Ours.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cost_ms: float = Field(default=5000, ge=0)
    skew_longest_ms: float = Field(default=5000, ge=0)
    skew_ratio: float = Field(default=10, ge=1)
    skew_data_ratio: float = Field(default=2, ge=1)
    tiny_tasks: int = Field(default=5000, ge=1)
    tiny_median_ms: float = Field(default=500, ge=0)
    few_tasks_stage_ms: float = Field(default=30_000, ge=0)
    spill_bytes: int = Field(default=GIB, ge=1)
    disk_bytes_per_second: int = Field(default=125 * MIB, ge=1)
    gc_ratio: float = Field(default=0.10, gt=0, le=1)
    failed_ratio: float = Field(default=0.10, gt=0, le=1)
    huge_bytes: int = Field(default=5 * GIB, ge=1)
    driver_gap_ms: float = Field(default=60_000, ge=0)
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
    broadcast_bytes: int = Field(default=GIB, ge=1)
    broadcast_tiers: tuple[tuple[int, int], ...] = (
        (10 * MIB, 100 * MIB),
        (100 * MIB, 10 * GIB),
        (1000 * MIB, 300 * GIB),
    )
    cross_join_pairs: float = Field(default=1e9, ge=1)
    python_udf_rows: int = Field(default=100_000, ge=1)
    repeated_scans: int = Field(default=3, ge=2)
    repeated_scan_bytes: int = Field(default=GIB, ge=1)
    cache_fill_ms: float = Field(default=10_000, ge=0)


def load_thresholds(folder: Path | None = None) -> Thresholds:
    """The thresholds of `diagnoses.yml` in a configuration folder; a key that is not there has its default.

    Raises:
        ConfigError: A key is unknown or wrong, or the file cannot be read.
    """
    return load_pipeline_config("diagnoses", Thresholds, folder or config_folder())
