"""How many executors an application asks for by its settings, and how many it had."""

from collections.abc import Mapping
from typing import Final

from spark_app.eventlog.model import kubernetes_pods
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.occupancy import levels
from spark_app.eventlog.parse.events import whole_number

INSTANCES: Final = "spark.executor.instances"
DYNAMIC: Final = "spark.dynamicAllocation.enabled"
_DEFAULT: Final = 2
"""Of `spark.executor.instances` on Kubernetes and YARN, in Spark 3.5 to 4.3; elsewhere there is none."""


def asked(settings: Mapping[str, str]) -> int | None:
    """The number that is asked for from the start to the end; None where it is not known, or follows the work."""
    if settings.get(DYNAMIC, "").strip().lower() == "true":
        return None
    has_default = kubernetes_pods.namespace(settings) is not None or settings.get("spark.master") == "yarn"
    return whole_number(settings.get(INSTANCES)) if INSTANCES in settings else _DEFAULT if has_default else None


def most_at_once(app: Application) -> int:
    """The most that were there at once."""
    lives = [(each.added, app.last + 1 if each.removed is None else each.removed, 1) for each in app.executors.values()]
    _, (numbers,) = levels((app.began or 0, app.last + 1), lives)
    return max(numbers, default=0)
