"""What is wrong and what to change: findings of the diagnoses, worst first."""

from dataclasses import dataclass

from app.eventlog.findings import Finding
from app.report.limits import Limits
from app.report.scope import Scope


@dataclass(frozen=True, slots=True)
class Findings:
    """Those about what is in scope, worst first."""

    shown: list[Finding]
    total: int


def findings(scope: Scope, found: list[Finding], limits: Limits) -> Findings:
    """In the order in which the diagnoses rank them: warnings first, then by what they cost."""
    own = [finding for finding in found if scope.has(finding)]
    return Findings(own[: limits.findings], len(own))
