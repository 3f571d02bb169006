"""The disk of a worker is full."""

from typing import Final

from spark_app.annexes.incidents.incident import OF_APPLICATION, Alert, Incident, Panel, finding
from spark_app.annexes.incidents.planting import Planting

WORKER: Final = "spark-worker-1"
SMALL: Final = "/dev/shm/incident_full_disk"


def undo(planting: Planting) -> None:
    """Removes the files of the shuffle from the small file system."""
    planting.end_programs()
    planting.docker.execute(WORKER, "rm", "-rf", SMALL)


INCIDENT: Final = Incident(
    does=f"gives the shuffle of an application on {WORKER} a disk of 64 MB, which fills up",
    ends="the application fails, and its files are removed",
    touches=("spark-master", WORKER),
    alert=Alert("SparkApplicationFailed", OF_APPLICATION),
    panel=Panel("spark-performance", "Failed", f"sum(spark_tasks_failed_total{{{OF_APPLICATION}}}) > 0"),
    cause=finding("failed_application"),
    plant=lambda planting: planting.run_program("full_disk.py"),
    undo=undo,
)
