"""What follows the runs of a command: what Spark did is sent, remembered and reported; none of it fails a run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app import records
from app.errors import SparkAppError
from app.eventlog import history, once, reading
from app.eventlog.diagnoses.diagnose import diagnose
from app.eventlog.diagnoses.thresholds import Thresholds, load_thresholds
from app.eventlog.findings import Finding
from app.eventlog.reading import Reading
from app.progress import Watcher
from app.records import RunResult
from app.report import index, page, runs
from app.report.sources import local
from app.settings import Settings, process_environment
from app.telemetry.export import names_an_endpoint
from app.telemetry.problems import Problems


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a command does once its runs have ended and Spark has closed its log."""

    settings: Settings
    watcher: Watcher
    thresholds: Thresholds

    def send(self, log: Path, *, patience: float) -> None:
        """Sends what the log tells, unless a bridge does."""
        if self.settings.event_log_exporter == "runner":
            where, problems = self.settings.environment, Problems()
            once.tell(log, environment=where, thresholds=self.thresholds, patience=patience, problems=problems)

    def report(self, log: Path, results: Sequence[RunResult]) -> list[RunResult]:
        """Writes a report on each run; gives the results with the paths of their reports."""
        read = reading.read(log)
        compared = history.remember(self.settings.records_path, read)
        sentences = compared.sentences if compared else []
        found = diagnose(read.app, self.thresholds)
        return [self._reported(read, result, found, sentences) for result in results]

    def _reported(self, read: Reading, result: RunResult, found: list[Finding], sentences: list[str]) -> RunResult:
        written = page.write(
            read,
            output=self.settings.reports_path / f"{result.run_id}.html",
            run=runs.of(result.folder),
            compared=sentences,
            found=found,
            backends=self.settings.backends if names_an_endpoint(process_environment()) else None,
        )
        served = self.settings.reports_url
        told = replace(result, report=f"{served.rstrip('/')}/{written.name}" if served else str(written))
        records.write(told, note=self.watcher.note)
        return told


def conclude(settings: Settings, results: list[RunResult], *, watcher: Watcher, patience: float) -> None:
    """Sends, remembers and reports; what cannot be done is said in one line.

    Args:
        settings: Where things are.
        results: The runs of one command, replaced by what is known of them then.
        watcher: Who is told.
        patience: Seconds that a collector may take to accept anything.
    """
    place = results[-1].event_log if results else None
    if place is None:
        return
    try:
        log = local(place)
        concluding = Conclusion(settings, watcher, load_thresholds(settings.config))
        concluding.send(log, patience=patience)
        results[:] = concluding.report(log, results)
        index.write(settings.reports_path)
    except Exception as error:  # noqa: BLE001 - what is told of runs never changes how they ended
        watcher.note(f"no report: {error if isinstance(error, SparkAppError | OSError) else repr(error)}")
