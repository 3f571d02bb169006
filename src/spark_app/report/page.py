"""One self-contained HTML file about a Spark application or a spark-app run."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import jinja2
from markupsafe import Markup

from spark_app.eventlog.comparison.compare import Comparison
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.reader import Reading
from spark_app.local_files import write_atomic
from spark_app.report import formatting
from spark_app.report.formatting import Mood
from spark_app.report.limits import MAX_BYTES, Limits
from spark_app.report.links import links
from spark_app.report.run_info import RunInfo
from spark_app.report.scope import Scope, scope
from spark_app.report.sections.capacity import capacity
from spark_app.report.sections.columns import columns
from spark_app.report.sections.configuration import configuration
from spark_app.report.sections.connect import connect
from spark_app.report.sections.executors import executors
from spark_app.report.sections.findings import findings as findings_of
from spark_app.report.sections.headline import headline, unread
from spark_app.report.sections.memory import memory
from spark_app.report.sections.model import model
from spark_app.report.sections.now import Now
from spark_app.report.sections.queries import queries
from spark_app.report.sections.replays import Replays, replays
from spark_app.report.sections.run import logs, quality
from spark_app.report.sections.stack_samples import stack_samples
from spark_app.report.sections.stages import stages
from spark_app.report.sections.streams import streams
from spark_app.report.sections.timeline import ticks, timeline
from spark_app.report.sections.unexplained import unexplained
from spark_app.settings import Backends, Prices
from spark_app.stack_samples.counts import MIN_FUNCTION_SAMPLES, MIN_STAGE_SAMPLES
from spark_app.stack_samples.stack_profile import StackProfile

FOLDER: Final = resources.files("spark_app.report")
FILTERS: Final = (
    "count",
    "quantity",
    "size",
    "duration",
    "tick",
    "share",
    "times",
    "score",
    "change",
    "hours",
    "money",
    "apart",
    "change_of_time",
    "cause",
    "number",
    "timestamp",
    "clock",
    "text",
    "line",
    "metric",
    "words",
)


TEMPLATES: Final = {
    "memory": "memory.html.j2",
    "capacity": "capacity.html.j2",
    "now": "now.html.j2",
    "headline": "headline.html.j2",
    "model": "model.html.j2",
    "findings": "findings.html.j2",
    "compared": "compared.html.j2",
    "connect": "connect.html.j2",
    "streams": "streams.html.j2",
    "timeline": "timeline.html.j2",
    "stages": "stages.html.j2",
    "stacks": "stack_samples.html.j2",
    "queries": "queries.html.j2",
    "executors": "executors.html.j2",
    "replays": "replays.html.j2",
    "quality": "quality.html.j2",
    "columns": "columns.html.j2",
    "configuration": "configuration.html.j2",
    "logs": "logs.html.j2",
}
"""The template of each section, in the order of the page; those of memory and capacity are within that of executors."""
NO_HEADLINE: Final = SimpleNamespace(outcome="outcome not known", mood="unsure", error=None, figures=None)
"""Stands above a page whose headline raised."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was written: where it is, what it is about, and how that ended."""

    path: Path
    title: str
    outcome: str
    mood: Mood


def write(  # noqa: PLR0913 - an argument for each part of the page
    reading: Reading,
    *,
    output: Path,
    run: RunInfo | None = None,
    compared: Comparison | None = None,
    findings: list[Finding] | None = None,
    backends: Backends | None = None,
    prices: Prices | None = None,
    replayed: Replays | None = None,
    stacks: StackProfile | None = None,
) -> Report:
    """Writes a report, whole or not at all.

    Args:
        reading: The event log.
        output: The file; its folder is created if it is missing.
        run: The spark-app run that the report is about; None for the whole application.
        compared: How the application compares with earlier ones; None if there is none.
        findings: Findings about it, worst first; None diagnoses with the default thresholds.
        backends: Where traces and dashboards are, to link to them.
        prices: What executors cost.
        replayed: Blocked time and forecasts; None makes them, of other cores.
        stacks: Samples of its stacks.

    Raises:
        OSError: The file cannot be written.
    """
    about = scope(reading.app, run)
    ranked = diagnose(reading.app, Thresholds(), about.covers()) if findings is None else findings
    failed = reading.app.failed_parts
    shown = replayed or failed.get("section replays", lambda: replays(about), None)
    content = html(
        reading, about, ranked, compared=compared, backends=backends, prices=prices, replayed=shown, stacks=stacks
    )
    write_atomic(output, content)
    top = failed.get("section headline", lambda: headline(about), NO_HEADLINE)
    return Report(output, about.title, top.outcome, top.mood)


def html(  # noqa: PLR0913 - as for `write`
    reading: Reading,
    about: Scope,
    ranked: list[Finding],
    *,
    compared: Comparison | None,
    backends: Backends | None,
    prices: Prices | None,
    replayed: Replays | None = None,
    now: Now | None = None,
    stacks: StackProfile | None = None,
) -> bytes:
    """The page, below 5 MB: as long as it is larger, half of everything is listed.

    A page that is served and follows the application says what it does `now`; a report does not, and has replays.
    """
    limits = Limits()
    shared = {
        "app": reading.app,
        "reading": reading,
        "scope": about,
        "written": datetime.now(UTC).timestamp() * 1000,
        "compared": compared or False,
        "links": links(about, backends),
        "ticks": ticks(about.period.length),
        "capacity": reading.app.failed_parts.get("section capacity", lambda: capacity(about, prices), None),
        "replays": replayed,
        "now": now,
    }
    while True:
        sections = _sections(reading, about, ranked, limits, prices, stacks)
        content = _rendered(reading, about, {**sections, **shared, "limits": limits}, is_live=now is not None)
        if len(content) <= MAX_BYTES or limits == limits.halved():
            return content
        limits = limits.halved()


def _sections(
    reading: Reading,
    about: Scope,
    ranked: list[Finding],
    limits: Limits,
    prices: Prices | None,
    stacks: StackProfile | None,
) -> dict[str, Any]:
    """What each section shows; None where it has nothing to show, or raised."""
    makers: dict[str, Callable[[], Any]] = {
        "headline": lambda: headline(about),
        "findings": lambda: findings_of(about, ranked, limits),
        "unexplained": lambda: unexplained(about, ranked, stacks),
        "model": lambda: model(about, limits),
        "connect": lambda: connect(about, limits, prices),
        "streams": lambda: streams(about, limits),
        "timeline": lambda: timeline(about, limits),
        "stages": lambda: stages(about, limits),
        "stacks": lambda: stack_samples(about, stacks, limits),
        "queries": lambda: queries(about, limits),
        "executors": lambda: executors(about, limits),
        "memory": lambda: memory(about),
        "quality": lambda: quality(about) or (None if about.run is None else False),
        "columns": lambda: columns(about, limits) or None,
        "configuration": lambda: configuration(about, limits),
        "logs": lambda: logs(about, limits),
    }
    failed = reading.app.failed_parts
    return {name: failed.get(f"section {name}", make, None) for name, make in makers.items()}


def _rendered(reading: Reading, about: Scope, content: Mapping[str, Any], *, is_live: bool) -> bytes:
    """The page around the sections, which are rendered before: its remarks name those that raised."""
    failed, shown = reading.app.failed_parts, dict[str, Markup]()
    content = {**content, "shown": shown, "top": content["headline"] or NO_HEADLINE}
    for name, template in TEMPLATES.items():
        if content[name] is not None:
            make = partial(_section, template, content)
            shown[name] = failed.get(f"section {name}", make, Markup())
    remarks = unread(reading, about, is_live=is_live)
    return environment().get_template("page.html.j2").render(content, unread=remarks).encode("utf-8", "replace")


def _section(template: str, content: Mapping[str, Any]) -> Markup:
    return Markup(environment().get_template(template).render(content).strip())


@cache
def environment() -> jinja2.Environment:
    """Templates that escape everything but our own style and script; formats are filters."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("spark_app.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ("script.js", "live.js", "flame.js")
    script, live_script, flame_script = ((FOLDER / name).read_text(encoding="utf-8") for name in names)
    environment.filters |= {name: getattr(formatting, name) for name in FILTERS}
    environment.globals |= {
        "style": Markup((FOLDER / "style.css").read_text(encoding="utf-8")),
        "script": Markup(script),
        "script_source": source_of(script),
        "live_script": Markup(live_script),
        "live_script_source": source_of(live_script),
        "flame_style": Markup((FOLDER / "flame.css").read_text(encoding="utf-8")),
        "flame_script": Markup(flame_script),
        "flame_script_source": source_of(flame_script),
        "least": MIN_FUNCTION_SAMPLES,
        "enough": MIN_STAGE_SAMPLES,
        "amount": formatting.amount,
        "limit": formatting.limit,
    }
    return environment


def source_of(script: str) -> str:
    """A script as a Content-Security-Policy allows it: by its hash."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
