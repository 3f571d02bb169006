"""Python functions that were observed: what they did in each stage."""

from dataclasses import dataclass
from pathlib import Path

from app.eventlog import python_functions
from app.eventlog.python_functions import Calls
from app.report.limits import Limits
from app.report.scope import Scope


@dataclass(frozen=True, slots=True)
class Function:
    """A function in the attempts of a stage."""

    stage: int
    name: str
    calls: Calls


@dataclass(frozen=True, slots=True)
class Functions:
    """Those that took longest first."""

    shown: list[Function]
    total: int


def functions(scope: Scope, limits: Limits, *, events: Path) -> Functions:
    """Those of the stages that a report is about; none where nobody asked for it, or only the log is here."""
    stages = (stage.info.id for stage in scope.stages)
    found = [Function(*each) for each in python_functions.in_stages(scope.app, stages, events)]
    found.sort(key=lambda function: -function.calls.wall_us)
    return Functions(found[: limits.stages], len(found))
