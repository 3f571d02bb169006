"""What an incident declares: what it does, what of it is to be seen, and how it is undone.

`$name` in a query or in labels stands for the name of the planting, `incident_skewed_join_163005`: the application or
the environment of what is planted has it, so that what is seen is of this planting and of no earlier one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from spark_app.annexes.incidents.planting import Planting

NAME: Final = "$name"
BY_ALERT: Final = "the alert"
"""What names the cause of an incident that has no other name for it."""
FINDINGS: Final = "spark_findings_total"
OF_APPLICATION: Final = f'spark_app_name="{NAME}"'
OF_ENVIRONMENT: Final = f'deployment_environment_name="{NAME}"'


@dataclass(frozen=True)
class Alert:
    """The alert that fires.

    Attributes:
        name: Its name in `prometheus/rules`.
        labels: Matchers of the labels by which it is known to be about this planting.
    """

    name: str
    labels: str

    @property
    def query(self) -> str:
        """The series that Prometheus has while it fires."""
        return f'ALERTS{{alertname="{self.name}", alertstate="firing", {self.labels}}}'


@dataclass(frozen=True)
class Panel:
    """The panel that shows it.

    Attributes:
        dashboard: The uid of its dashboard.
        title: Its title there.
        query: A query over series of the panel, which has a result as soon as the panel shows the incident.
    """

    dashboard: str
    title: str
    query: str


@dataclass(frozen=True)
class Cause:
    """What names the cause.

    Attributes:
        name: The rule of the finding, or the value of the label of the alert.
        query: It has a result as soon as the cause is named.
        is_finding: Whether the name is that of a rule of the diagnoses.
    """

    name: str
    query: str
    is_finding: bool = False


def finding(rule: str) -> Cause:
    """A finding in the event log of the planted application, which the bridge has counted."""
    return Cause(rule, f'{FINDINGS}{{spark_finding_rule="{rule}", {OF_APPLICATION}}} > 0', is_finding=True)


def nothing(_: "Planting") -> None:
    """Where there is nothing to do."""


@dataclass(frozen=True)
class Incident:
    """A failure that can be planted into the stack.

    Attributes:
        does: What it does, in one line.
        ends: How it ends, in one line.
        touches: The containers that it changes.
        alert: The alert that fires.
        panel: The panel that shows it.
        cause: What names its cause; None where the alert itself does.
        seconds: The time after the planting within which all of it is seen.
        plant: Plants it; the time counts from then on.
        prepare: Makes what the incident needs before.
        undo: Takes away what the end of its programs and of its folder does not; may be called when nothing is there.
        service: The service of its traces in Jaeger; empty if it leaves none.
    """

    does: str
    ends: str
    touches: tuple[str, ...]
    alert: Alert
    panel: Panel
    cause: Cause | None
    plant: Callable[["Planting"], None]
    seconds: float = 120
    prepare: Callable[["Planting"], None] = nothing
    undo: Callable[["Planting"], None] = nothing
    service: str = NAME
