"""A worker is killed while an application has an executor there."""

from typing import Final

from spark_app.annexes.incidents.incident import Alert, Incident, Panel, finding
from spark_app.annexes.incidents.planting import Planting

WORKER: Final = "spark-worker-2"
INSTANCE: Final = f"{WORKER}:8082"


def prepare(planting: Planting) -> None:
    """Starts an application, and waits until both of its executors have had tasks."""
    planting.run_program("two_stages.py")
    planting.wait_for_line("tasks run")


INCIDENT: Final = Incident(
    does=f"kills the container of {WORKER} while an application has an executor there",
    ends="the worker is started again; the application ends by itself",
    touches=("spark-master", WORKER),
    alert=Alert("SparkWorkerDown", f'instance="{INSTANCE}"'),
    panel=Panel("spark-cluster", "Up", f'min by (job, instance) (up{{instance="{INSTANCE}"}}) == 0'),
    cause=finding("lost_executors"),
    prepare=prepare,
    plant=lambda planting: planting.docker.kill(WORKER),
    undo=lambda planting: planting.docker.start(WORKER),
)
