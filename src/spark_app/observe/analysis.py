"""Analyzes an application after its end: exports its event log, stores its profile and writes reports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace as with_other

from spark_app.errors import InputError, MachineError, message_of
from spark_app.eventlog import reader
from spark_app.eventlog.bridge.one_shot import LogExport
from spark_app.eventlog.comparison import baselines, profiling
from spark_app.eventlog.comparison.compare import Comparison
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.labels import LabelSources
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.outcome import GOOD
from spark_app.eventlog.parse.locations import log_path
from spark_app.eventlog.reader import Reading, find_log
from spark_app.eventlog.replay.what_if import Change
from spark_app.local_files import local_path
from spark_app.observe import retention, run_copies
from spark_app.observe.followed_log import FollowedLog
from spark_app.observe.hot_keys import HotKeys
from spark_app.report import index, page, run_info, run_store
from spark_app.report.limits import Limits
from spark_app.report.page import REPORT, Frame
from spark_app.report.run_info import RunInfo
from spark_app.report.scope import scope
from spark_app.report.sections.replays import Replays, replays
from spark_app.report.sections.stack_samples import StackSection, stack_samples
from spark_app.report.sections.unexplained import Unexplained, unexplained
from spark_app.runs import run_record
from spark_app.runs.run_record import RunRecord
from spark_app.settings import Backends, Settings, process_environment
from spark_app.stack_samples import hot_lines, stack_profile
from spark_app.stack_samples.stack_profile import StackProfile
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import names_an_endpoint, resource_attributes

Note = Callable[[str], None]
SENDING_SECONDS: Final = 2.5
"""How long an endpoint that accepts nothing may delay the end of a command, in seconds, over all its telemetry."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one application.

    Attributes:
        settings: The configuration.
        thresholds: Thresholds of the diagnoses.
        reading: Its event log, as read.
        profile: What later applications are compared with.
        findings: About all of it, worst first.
        comparison: How it compares with the last successful ones; None without any.
        changes: What is forecast; None for other cores.
        stacks: Samples of its stacks by stage; None where there are none.
        hot_keys: Names the keys behind skew; None where that was not asked for.
    """

    settings: Settings
    thresholds: Thresholds
    reading: Reading
    profile: RunProfile
    findings: list[Finding]
    comparison: Comparison | None
    changes: Sequence[Change] | None = None
    stacks: StackProfile | None = None
    hot_keys: HotKeys | None = None
    _replays: dict[Path | None, Replays | None] = field(default_factory=dict)

    def replays_of(self, run: RunInfo | None) -> Replays | None:
        """Blocked time and forecasts of all of it, or of a run in it; computed once for the report and the document."""
        key = run.folder if run else None
        if key not in self._replays:
            about = scope(self.reading.app, run)
            make = partial(replays, about, self.changes)
            self._replays[key] = self.reading.app.failed_parts.get("section replays", make, None)
        return self._replays[key]

    def stacks_of(self, run: RunInfo | None) -> StackSection | None:
        """Samples of the stacks of all of it, or of a run in it; None where there are none."""
        make = partial(stack_samples, scope(self.reading.app, run), self.stacks, Limits())
        return self.reading.app.failed_parts.get("section stacks", make, None)

    def unexplained_of(self, run: RunInfo | None, findings: Sequence[Finding]) -> list[Unexplained]:
        """The work of all of it, or of a run in it, with much of the time that these findings do not claim."""
        make = partial(unexplained, scope(self.reading.app, run), findings, self.stacks)
        return self.reading.app.failed_parts.get("section unexplained", make, [])

    def findings_of(self, run: RunInfo | None) -> list[Finding]:
        """The findings about all of it, or about a run in it, to which other runs add nothing."""
        app, found = self.reading.app, self.findings
        if run is not None:
            stacks = self.stacks and self.stacks.within(run.alone)
            found = _with_hot_lines(diagnose(app, self.thresholds, scope(app, run).covers()), stacks, app)
        return found if self.hot_keys is None else self.hot_keys.named(found, app)

    def report(self, output: Path, run: RunInfo | None = None) -> str:
        """Writes a report about the application or one run in it; returns its path, or its URL if reports are served.

        Raises:
            OSError: The report cannot be written.
        """
        report = page.write(
            self.reading,
            output=output,
            run=run,
            compared=self.comparison,
            findings=self.findings_of(run),
            backends=self._backends,
            prices=self.settings.prices,
            replayed=self.replays_of(run),
            stacks=self.stacks,
        )
        if output.parent != self.settings.reports_path:
            return str(output)
        index.add(report)
        run_copies.keep_report(self.settings, output, run.started if run else self.profile.started)
        return f"{self.settings.reports_url.rstrip('/')}/{output.name}" if self.settings.reports_url else str(output)

    def page(self, run: RunInfo | None = None, frame: Frame = REPORT) -> bytes:
        """The page by what is known now, without replays and samples of stacks.

        Args:
            run: A run in the application, which the page is about.
            frame: Stands around the sections.
        """
        return page.html(
            self.reading,
            scope(self.reading.app, run),
            self.findings_of(run),
            compared=self.comparison,
            backends=self._backends,
            prices=self.settings.prices,
            frame=frame,
        )

    @property
    def _backends(self) -> Backends | None:
        """Where traces and dashboards are; None where nothing is exported."""
        return self.settings.backends if names_an_endpoint(process_environment()) else None

    def save_baseline(self, *, is_good: bool | None = None) -> None:
        """Stores the profile; later applications are compared with it only if it did not fail.

        Args:
            is_good: Whether all spark-app runs in it succeeded; None for other applications.

        Raises:
            OSError: The profile cannot be written.
        """
        profile = self.profile
        if is_good is not None and profile.outcome in GOOD:
            profile = with_other(profile, outcome="succeeded" if is_good else "failed")
        baselines.save(self.settings.profiles_path, profile, days=self.settings.retention.days)
        run_copies.keep_profile(self.settings, profile)


def analyze(reading: Reading, settings: Settings, thresholds: Thresholds) -> Analysis:
    """Diagnoses an application, and compares it with the last successful ones of its name.

    What `spark-app observe` learned of its end and of its host is in the stored profile, and holds for later reports
    of the same log. Those that the run store has of it come from there.
    """
    reading = with_profiles_of_store(reading, settings)
    baselines.recall(settings.profiles_path, reading)
    profile = with_other(
        profiling.run_profile(reading), labels=LabelSources.configured(settings, resource_attributes()).of(reading.app)
    )
    app, compare = reading.app, partial(baselines.compare_with_baseline, settings.profiles_path, profile)
    comparison = app.failed_parts.get("comparison with earlier runs", compare, None)
    stacks = app.failed_parts.get("section stacks", partial(stack_profile.of_log, reading.log), None)
    findings = _with_hot_lines(diagnose(app, thresholds), stacks, app)
    profile = with_other(profile, findings=list(dict.fromkeys(finding.rule for finding in findings)))
    return Analysis(settings, thresholds, reading, profile, findings, comparison, stacks=stacks)


def _with_hot_lines(findings: list[Finding], stacks: StackProfile | None, app: Application) -> list[Finding]:
    return app.failed_parts.get("hot lines of findings", lambda: hot_lines.named(findings, stacks, app), findings)


def with_profiles_of_store(reading: Reading, settings: Settings) -> Reading:
    """Fetches the last run profiles of an application; what hinders that is a remark."""
    try:
        store = run_store.configured_store(settings) if reading.app.name else None
        if store is not None:
            store.fetch_profiles(reading.app.name or "", settings.profiles_path)
    except (InputError, MachineError, OSError) as error:
        why = f"Runs of other machines are not compared with this one: {message_of(error)}."
        return replace(reading, notes=(*reading.notes, why))
    return reading


def log_export(settings: Settings, thresholds: Thresholds, *, patience: float) -> LogExport | None:
    """An export of event logs for `reader.read`; None where a bridge exports them, or no patience is left.

    Args:
        settings: Names the exporter and the environment.
        thresholds: Thresholds of the diagnoses.
        patience: Seconds that the endpoint may take for the first request.
    """
    if settings.event_log_exporter != "runner" or patience <= 0:
        return None
    return LogExport(
        environment=settings.environment,
        thresholds=thresholds,
        labels=LabelSources.configured(settings, resource_attributes()),
        patience=patience,
        errors=TelemetryErrors(),
    )


def finish(
    settings: Settings,
    results: list[RunRecord],
    thresholds: Thresholds,
    *,
    note: Note,
    patience: float,
    followed: FollowedLog | None = None,
) -> None:
    """Reads the event log of a command once: exports it, stores its profile and writes the reports.

    A failure is noted in one line and changes no run. Then everything is copied to the run store.

    Args:
        settings: The configuration.
        results: The runs of one command; replaced by the same with the paths of their reports.
        thresholds: Thresholds of the diagnoses.
        note: Is called with each line worth reading.
        patience: Seconds that the endpoint may take for the first request; with 0 nothing is exported.
        followed: The log, where it was read and exported while the runs went on.
    """
    location = results[-1].event_log if results else None
    if location is not None:
        _report(location, settings, results, thresholds, note=note, patience=patience, followed=followed)
    run_copies.keep_runs(settings, results, note=note)
    run_copies.send(settings, note=note)


def _report(
    location: str,
    settings: Settings,
    results: list[RunRecord],
    thresholds: Thresholds,
    *,
    note: Note,
    patience: float,
    followed: FollowedLog | None,
) -> None:
    """The part of `finish` that needs an event log."""
    try:
        if followed is None:
            reading = _analyze_whole(location, settings, results, thresholds, note=note, patience=patience)
        else:
            reading, unsent = followed.finish(patience=patience)
            if unsent is not None:
                note(unsent)
            _analyze(reading, settings, results, thresholds, note=note)
        retention.prune_daily(settings, note=note)
    except Exception as error:  # noqa: BLE001 - a report never changes how its runs ended
        note(f"no report: {message_of(error)}")


def _analyze_whole(
    location: str,
    settings: Settings,
    results: list[RunRecord],
    thresholds: Thresholds,
    *,
    note: Note,
    patience: float,
) -> Reading:
    """Reads the log of a command, which may be on an object store, exports it, and analyzes it."""
    log = local_path(location) or find_log(log_path(location))
    export = log_export(settings, thresholds, patience=patience)
    try:
        reading = reader.read(log, make_listener=export.listener if export else None)
        _analyze(reading, settings, results, thresholds, note=note)
    finally:
        if export is not None:
            export.finish()
    return reading


def _analyze(
    reading: Reading,
    settings: Settings,
    results: list[RunRecord],
    thresholds: Thresholds,
    *,
    note: Note,
) -> None:
    """Stores the profile of an application, unless a part of it was forgotten, and writes the reports of its runs."""
    analysis = analyze(reading, settings, thresholds)
    if not reading.forgotten:
        analysis.save_baseline(is_good=all(result.outcome == "succeeded" for result in results))
    results[:] = _reported(analysis, results, note)
    index.write(settings.reports_path)


def _reported(analysis: Analysis, results: Sequence[RunRecord], note: Note) -> list[RunRecord]:
    """Writes a report about each run; returns the results with the paths of their reports."""
    reported = []
    for result in results:
        output = analysis.settings.reports_path / f"{result.run_id}.html"
        reported.append(replace(result, report=analysis.report(output, run_info.read(result.folder))))
        run_record.write(reported[-1], note=note)
    return reported
