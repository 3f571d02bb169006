"""Judges a streaming query while it runs, period by period: it may run for months, and has to be well now."""

from typing import Final

from spark_app.eventlog.diagnoses import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.stream_samples import Samples
from spark_app.eventlog.model.streams import MAX_QUERIES, Batch

FIRST_MS: Final = 300_000
"""How much time of a query is judged first: who has started it waits for it, and its first batches are slow."""
PERIOD_MS: Final = 900_000
"""How much time of a query is judged at once later: a quarter of the hour that alerts look back."""


class StreamPeriods:
    """The batches of each streaming query of an application that no rule has judged yet."""

    def __init__(self, app: Application, thresholds: Thresholds) -> None:
        """Starts without batches."""
        self._app, self._thresholds = app, thresholds
        self._unjudged: dict[str, Samples] = {}

    def ended(self, batch: Batch) -> list[Finding]:
        """Takes the batch that has just ended; returns the findings about a period that ends with it."""
        query = self._app.streams.queries.get(batch.key.query)
        if query is None or query.last is None or batch.progress is None:
            return []
        period = self._unjudged.setdefault(query.id, Samples())
        period.add(query.last)
        if len(self._unjudged) > MAX_QUERIES:
            self._unjudged.pop(next(iter(self._unjudged)))
        begin, end = period.all[0].started, period.all[-1].ended
        judged_ms = begin - query.history.all[0].started
        if end - begin < min(PERIOD_MS, max(FIRST_MS, judged_ms)):
            return []
        del self._unjudged[query.id]
        return diagnose.of_stream(self._app, query, period.all, self._thresholds)

    def rest(self) -> list[Finding]:
        """The findings about the periods that the end of the log cuts off."""
        known = self._app.streams.queries
        periods = ((known[number], period) for number, period in self._unjudged.items() if number in known)
        return [
            finding
            for query, period in periods
            for finding in diagnose.of_stream(self._app, query, period.all, self._thresholds)
        ]
