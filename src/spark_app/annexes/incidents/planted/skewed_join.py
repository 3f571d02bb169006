"""A join with one key that nearly all rows have."""

from typing import Final

from spark_app.annexes.incidents.incident import OF_APPLICATION, Alert, Incident, Panel, finding

DURATIONS: Final = f"sum by (le, spark_stage_group) (spark_task_duration_seconds_bucket{{{OF_APPLICATION}}})"

INCIDENT: Final = Incident(
    does="joins sales with shops, and nearly all sales are of one shop: one task does the work of the join",
    ends="the program ends by itself",
    touches=("spark-master",),
    alert=Alert("SparkPartitionSkew", OF_APPLICATION),
    panel=Panel(
        "spark-performance",
        "Skew by stage group",
        f"histogram_quantile(0.99, {DURATIONS}) / histogram_quantile(0.5, {DURATIONS}) > 5",
    ),
    cause=finding("partition_skew"),
    plant=lambda planting: planting.run_program("skewed_join.py"),
)
