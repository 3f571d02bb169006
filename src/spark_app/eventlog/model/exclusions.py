"""The executors and hosts that Spark excluded because tasks failed there (`spark.excludeOnFailure.enabled`)."""

from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.parse.events import Excluded, Unexcluded

MAX_EXCLUSIONS: Final = 1000
"""How many exclusions of an application are kept, the first ones."""


@dataclass(slots=True)
class Exclusion:
    """A time in which an executor, or all executors of a host, got no tasks.

    Attributes:
        executor, host: What was excluded; one of them is None.
        stage: The attempt of the stage whose tasks it did not get; None for those of all stages.
        failures: The failed tasks of the executor, or the excluded executors of the host; None if the log lacks it.
        started: When it began.
        ended: When Spark ended it; None if the log does not say so, as for an exclusion from a stage.
    """

    executor: str | None
    host: str | None
    stage: tuple[int, int] | None
    failures: int | None
    started: int
    ended: int | None = None


class Exclusions:
    """The exclusions so far, in their order."""

    def __init__(self) -> None:
        """Nothing was excluded yet."""
        self.known: list[Exclusion] = []

    def excluded(self, event: Excluded) -> None:
        """Adds an exclusion, once: Spark logs the same one under its old name, `Blacklisted`, too."""
        stage = None if event.stage is None else (event.stage, event.stage_attempt or 0)
        is_known = any(each.stage == stage for each in self._open(event))
        if not is_known and len(self.known) < MAX_EXCLUSIONS:
            self.known.append(Exclusion(event.executor, event.host, stage, event.failures, event.time))

    def unexcluded(self, event: Unexcluded) -> None:
        """Ends the exclusion of an executor or a host from all stages."""
        for each in self._open(event):
            if each.stage is None:
                each.ended = max(each.started, event.time)

    def _open(self, event: Excluded | Unexcluded) -> list[Exclusion]:
        of = (event.executor, event.host)
        return [each for each in self.known if (each.executor, each.host) == of and each.ended is None]
