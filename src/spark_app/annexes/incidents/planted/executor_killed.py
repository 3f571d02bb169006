"""An executor is killed in the midst of a stage."""

from typing import Final

from spark_app.annexes.incidents.incident import OF_APPLICATION, Alert, Incident, Panel, finding
from spark_app.annexes.incidents.planting import WORKERS, Planting
from spark_app.errors import MachineError


def prepare(planting: Planting) -> None:
    """Starts an application, and waits until both of its executors have had tasks."""
    planting.run_program("two_stages.py")
    planting.wait_for_line("tasks run")


def plant(planting: Planting) -> None:
    """Kills the executor that the first worker has of the application; of the second, if the first has none."""
    application = planting.application()
    if application is None:
        raise MachineError(f"the application {planting.name} has ended before its executor was killed")
    script = 'pkill -KILL --oldest --full "CoarseGrainedExecutorBackend.*--app-id $1 " && echo killed || true'
    if not any(planting.docker.shell(worker, script, application["id"]) for worker in WORKERS):
        raise MachineError(f"no worker has an executor of {planting.name}")


INCIDENT: Final = Incident(
    does="kills an executor of an application, as the kernel does with one that uses too much memory",
    ends="Spark starts another executor; the application ends by itself",
    touches=("spark-master", *WORKERS),
    alert=Alert("SparkExecutorsLost", OF_APPLICATION),
    panel=Panel(
        "spark-performance",
        "Executors lost",
        f"sum by (spark_executor_loss) (spark_executors_lost_total{{{OF_APPLICATION}}}) > 0",
    ),
    cause=finding("lost_executors"),
    prepare=prepare,
    plant=plant,
)
