"""A join with one key that nearly all rows have."""

from typing import Final

from spark_app.annexes.incidents.incident import OF_APPLICATION, Alert, Incident, Panel, finding

LONGEST, MEDIAN = (
    f"sum by (spark_stage_group) (spark_stage_{which}_task_seconds_total{{{OF_APPLICATION}}})"
    for which in ("longest", "median")
)

INCIDENT: Final = Incident(
    does="joins sales with shops, and nearly all sales are of one shop: one task does the work of the join",
    ends="the program ends by itself",
    touches=("spark-master",),
    alert=Alert("SparkPartitionSkew", OF_APPLICATION),
    panel=Panel(
        "spark-performance",
        "Skew by stage group",
        f"{LONGEST} / {MEDIAN} > 5",
    ),
    cause=finding("partition_skew"),
    plant=lambda planting: planting.run_program("skewed_join.py"),
)
