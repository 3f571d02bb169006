"""A driver that collects rows, until they do not fit."""

from typing import Final

from spark_app.annexes.incidents.incident import OF_APPLICATION, Alert, Incident, Panel, finding

INCIDENT: Final = Incident(
    does="collects ever more rows to the driver, until they exceed spark.driver.maxResultSize",
    ends="the program fails",
    touches=("spark-master",),
    alert=Alert("SparkApplicationFailed", OF_APPLICATION),
    panel=Panel("spark-performance", "Failed", f"spark_jobs_failed_total{{{OF_APPLICATION}}} > 0"),
    cause=finding("failed_application"),
    plant=lambda planting: planting.run_program("driver_collects.py"),
)
