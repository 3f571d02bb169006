"""A summary in Markdown, for the page on which a CI shows what a step found. Text from programs is escaped."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from spark_app import formatting
from spark_app.eventlog.comparison.causes import seconds
from spark_app.eventlog.comparison.compare import Comparison
from spark_app.report.formatting import escaped
from spark_app.report.parts import Figures
from spark_app.report.results.schema import Application, Finding, Results

MAX_ROWS: Final = 10
"""Findings and causes listed; the report has all."""


def append(file: Path, results: Results) -> None:
    """Appends the summary to a file, which several steps may write.

    Raises:
        OSError: The file cannot be written.
    """
    with file.open("a", encoding="utf-8") as page:
        page.write(summary(results) + "\n")


def summary(results: Results) -> str:
    """A headline for each application, what fails, figures, findings and the comparison."""
    lines = [line for application in results.applications for line in _application(application)]
    if results.comparison is not None:
        lines += [f"### {escaped(results.comparison.application)}", "", *_comparison(results.comparison)]
    if not lines:
        lines = ["### spark-app", "", "No Spark application was observed.", ""]
    return "\n".join([*lines, *_trouble(results)])


def _application(application: Application) -> Iterator[str]:
    yield f"### {escaped(application.name)}: {escaped(application.summary)}"
    yield from ("", _figures(application.figures), "")
    if application.error:
        yield from (f"**Error:** {escaped(application.error)}", "")
    if application.findings:
        yield from (*_findings(application.findings), "")
    if application.comparison is not None:
        yield from _comparison(application.comparison)
    yield from (f"Report: {escaped(application.report)}", "")


def _figures(figures: Figures) -> str:
    parts = {
        "time": formatting.duration(figures.duration_ms),
        "jobs": formatting.count(figures.jobs),
        "tasks": formatting.count(figures.tasks),
        "failed tasks": formatting.count(figures.failed_tasks) if figures.failed_tasks else "",
        "read": moved(figures.rows_read, figures.bytes_read),
        "written": moved(figures.rows_written, figures.bytes_written),
        "shuffled": formatting.size(figures.shuffled_bytes),
        "spilled": formatting.size(figures.spilled_bytes),
        "cores busy": formatting.share(figures.cores_busy_ratio),
    }
    return " · ".join(f"{name} **{escaped(text)}**" for name, text in parts.items() if text)


def moved(rows: int | None, size: int | None) -> str:
    """Rows and bytes, as far as they are known."""
    known = [formatting.quantity(rows, "row")] if rows is not None else []
    return ", ".join(known + ([formatting.size(size)] if size is not None else [])) or formatting.UNKNOWN


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    yield from ("| | finding | cost | what to change |", "|---|---|---|---|")
    for finding in findings[:MAX_ROWS]:
        cost = formatting.duration(finding.cost_ms)
        cost += formatting.between(finding.cost_low_ms, finding.cost_high_ms)
        part = f", {formatting.share(finding.cost_ratio)}" if finding.cost_ratio is not None else ""
        cells = (
            finding.severity,
            f"`{finding.rule}` {escaped(finding.text)}",
            f"{cost}{part}",
            escaped(finding.advice),
        )
        yield f"| {' | '.join(cells)} |"
    if len(findings) > MAX_ROWS:
        yield f"| | {formatting.count(len(findings) - MAX_ROWS)} more in the report | | |"


def _comparison(compared: Comparison) -> Iterator[str]:
    now, before = formatting.duration(compared.now_ms), formatting.duration(compared.before_ms)
    runs = "an earlier run" if compared.runs == 1 else f"{formatting.count(compared.runs)} earlier runs"
    verdict = seconds(compared.difference_ms) if compared.is_significant else "no significant difference"
    yield from (f"**Compared with {runs}:** {now}, before {before}: {verdict}", "")
    for cause in compared.causes[:MAX_ROWS]:
        yield f"- {seconds(cause.ms)} {escaped(cause.text)}{f' → {escaped(cause.advice)}' if cause.advice else ''}"
    yield from [""] if compared.causes else []


def _trouble(results: Results) -> Iterator[str]:
    for failed in results.failed_on:
        yield from (f"**Failed:** `--fail-on {failed.condition}` {escaped(failed.reason)}", "")
    if results.error is not None and not results.failed_on:
        yield from (f"**Failed:** {escaped(results.error.message)}", "")
