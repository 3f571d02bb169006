"""Applications on clusters, which annexes find by names of their own scheme."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spark_app.installation import annexes

if TYPE_CHECKING:
    from spark_app.eventlog.parse.locations import LogPath

ANNEXES: Final = {"k8s://": "kubernetes"}
"""The annex of each scheme."""


@dataclass(frozen=True, slots=True)
class ClusterApplication:
    """What a cluster knows of an application.

    Attributes:
        log: Its event log.
        exit_code: The exit code of its driver; None where that has not ended by itself.
        is_running: Whether its driver has not ended.
        notes: What the cluster says of its driver and its executors: a sentence each.
    """

    log: "LogPath"
    exit_code: int | None
    is_running: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """What an annex adds that finds applications on clusters of a kind.

    Attributes:
        scheme: What their names begin with, as `k8s://`.
        application: Finds the application of a name.
    """

    scheme: str
    application: Callable[[str], ClusterApplication]


def application(name: str) -> ClusterApplication | None:
    """The application that a name with the scheme of a cluster names; None for another name.

    Raises:
        InputError: There is no such application, or its log cannot be read.
        MachineError: The annex for the scheme, or what it needs, is not installed.
    """
    scheme = next((each for each in ANNEXES if name.startswith(each)), None)
    if scheme is None:
        return None
    annexes.require(ANNEXES[scheme], f"cannot read {name}: {scheme} is a scheme")
    return next(each for each in annexes.added(Cluster) if each.scheme == scheme).application(name)
