"""What is done when an application has ended: it is sent, remembered and reported. None of it can fail a run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from msgspec.structs import replace as with_other

from app import records
from app.errors import InputError, SparkAppError
from app.eventlog import reading
from app.eventlog.bridge import once
from app.eventlog.comparison import history, summary
from app.eventlog.comparison.record import Summary
from app.eventlog.diagnoses.diagnose import diagnose
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.findings import Finding
from app.eventlog.reading import Reading
from app.folders import local
from app.progress import Watcher
from app.records import RunRecord
from app.report import index, page, runs
from app.report.runs import RunInfo
from app.settings import Settings, process_environment
from app.telemetry.export import names_an_endpoint
from app.telemetry.problems import Problems

SENDING_SECONDS: Final = 2.5
"""How long a collector that accepts nothing may delay the end of a command, with telemetry of the runs and of Spark."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What is known of an application whose log was read.

    Attributes:
        settings: Where things are.
        read: Its event log.
        record: What later ones are compared with.
        found: What is found in it, the worst first.
        compared: Why it took longer or shorter than the last good ones, in sentences; none without any.
    """

    settings: Settings
    read: Reading
    record: Summary
    found: list[Finding]
    compared: list[str]

    def report(self, output: Path, run: RunInfo | None = None) -> str:
        """Writes a report on it, or on one of our runs in it; gives the path, or the address where reports are served.

        Raises:
            OSError: It cannot be written.
        """
        written = page.write(
            self.read,
            output=output,
            run=run,
            compared=self.compared,
            found=self.found,
            backends=self.settings.backends if names_an_endpoint(process_environment()) else None,
        )
        served = self.settings.reports_url if written.parent == self.settings.reports_path else None
        return f"{served.rstrip('/')}/{written.name}" if served else str(written)

    def remember(self, *, is_good: bool) -> None:
        """Keeps its record; later ones are compared with it only if it is known to have ended well.

        Raises:
            OSError: It cannot be written.
        """
        is_spoiled = self.record.outcome == "succeeded" and not is_good
        kept = with_other(self.record, outcome="failed") if is_spoiled else self.record
        history.keep(self.settings.records_path, kept)


def concluded(read: Reading, settings: Settings, thresholds: Thresholds) -> Conclusion:
    """Diagnoses an application, and compares it with the last good ones of its name."""
    record = summary.of(read)
    compared = history.beside_last_good(settings.records_path, record)
    return Conclusion(settings, read, record, diagnose(read.app, thresholds), compared.sentences if compared else [])


def send(log: Path, settings: Settings, thresholds: Thresholds, *, patience: float) -> bool:
    """Sends what a log tells; whether all of it was accepted, or none was to be sent: a bridge does, or nobody listens.

    Args:
        log: Of an application that has ended.
        settings: Who sends, and where this is.
        thresholds: Of the diagnoses.
        patience: Seconds that a collector may take for the first that it is sent.
    """
    if settings.event_log_exporter != "runner":
        return True
    where, problems, accepted = settings.environment, Problems(), list[bool]()

    def tell() -> None:
        told = once.tell(log, environment=where, thresholds=thresholds, patience=patience, problems=problems)
        accepted.append(told)

    return problems.guard("Spark's spans are not sent", tell) and all(accepted)


def conclude(
    settings: Settings, results: list[RunRecord], thresholds: Thresholds, *, watcher: Watcher, patience: float
) -> None:
    """Sends, remembers and reports; what cannot be done is said in one line.

    Args:
        settings: Where things are.
        results: The runs of one command, replaced by what is known of them then.
        thresholds: Of the diagnoses.
        watcher: Who is told.
        patience: Seconds that a collector may take for the first that it is sent; none are left: nothing is sent.
    """
    place = results[-1].event_log if results else None
    if place is None:
        return
    try:
        log = local(place)
        if log is None:
            raise InputError(f"the event log is not on this machine but at {place}")
        if patience > 0:
            send(log, settings, thresholds, patience=patience)
        conclusion = concluded(reading.read(log), settings, thresholds)
        conclusion.remember(is_good=all(result.outcome == "succeeded" for result in results))
        results[:] = _reported(conclusion, results, watcher)
        index.write(settings.reports_path)
    except Exception as error:  # noqa: BLE001 - what is told of runs never changes how they ended
        watcher.note(f"no report: {error if isinstance(error, SparkAppError | OSError) else repr(error)}")


def _reported(conclusion: Conclusion, results: Sequence[RunRecord], watcher: Watcher) -> list[RunRecord]:
    """Writes a report on each run; gives the results with the paths of their reports."""
    told = []
    for result in results:
        output = conclusion.settings.reports_path / f"{result.run_id}.html"
        told.append(replace(result, report=conclusion.report(output, runs.of(result.folder))))
        records.write(told[-1], note=watcher.note)
    return told
