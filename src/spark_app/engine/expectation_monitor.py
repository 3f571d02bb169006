"""Judges the micro-batches of a query by what was observed of their rows."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from spark_app.quality.results import ExpectationResult
from spark_app.vocabulary.spark_progress import CHECKED, EXPECTATIONS


class ExpectationMonitor:
    """The expectations of a query about the rows of a table, and what was found so far.

    Attributes:
        table: The table that the rows are written to.
        limits: The share of the rows of a micro-batch that may violate an expectation, by its name.
        is_strict: Whether a breach stops the query.
    """

    def __init__(self, table: str, limits: Mapping[str, float], *, is_strict: bool) -> None:
        """Nothing was observed yet."""
        self.table, self.limits, self.is_strict = table, limits, is_strict
        self._checked = 0
        self._violations: Counter[str] = Counter()

    @property
    def observation(self) -> str:
        """The name of the observation with the counts."""
        return f"{EXPECTATIONS}{self.table}"

    def results(self, observed: Mapping[str, Any]) -> list[ExpectationResult]:
        """The results of one micro-batch, from `observedMetrics` of its progress; none if it had no rows."""
        counts = observed.get(self.observation) or {}
        checked = counts.get(CHECKED, 0)
        if not checked:
            return []
        found = {name: counts.get(name, 0) for name in self.limits}
        self._checked += checked
        self._violations.update(found)
        return [self._result(name, violations, checked) for name, violations in found.items()]

    def totals(self) -> list[ExpectationResult]:
        """The results over all micro-batches so far."""
        return [self._result(name, self._violations[name], self._checked) for name in self.limits if self._checked]

    def _result(self, name: str, violations: int, checked: int) -> ExpectationResult:
        return ExpectationResult(name, violations / checked, self.limits[name], violations, checked)
