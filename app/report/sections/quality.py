"""How well a run of ours kept its promises, and what it quarantined, by reason."""

from dataclasses import dataclass

from app.figures import Figure
from app.records import RunRecord
from app.report.scope import Scope


@dataclass(frozen=True, slots=True)
class Quality:
    """The record's counts and figures; `broken` are those that some rows broke, worst first."""

    record: RunRecord
    broken: list[Figure]
    kept: list[Figure]

    @property
    def worst(self) -> int:
        """The most rows that broke one promise."""
        return max((figure.broken or 0 for figure in self.broken), default=0)


def quality(scope: Scope) -> Quality | None:
    """None for an application that is no run of ours, or one that left no record."""
    record = scope.run.record if scope.run else None
    if record is None:
        return None
    broken = [figure for figure in record.figures if figure.broken or figure.is_breached]
    kept = [figure for figure in record.figures if figure not in broken]
    ranked = sorted(broken, key=lambda figure: (not figure.is_breached, -(figure.broken or 0)))
    return Quality(record, ranked, kept)
