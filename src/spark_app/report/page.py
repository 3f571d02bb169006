"""One self-contained HTML file about a Spark application or a spark-app run."""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import jinja2
from markupsafe import Markup

from spark_app.eventlog.comparison.compare import Comparison
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.reader import Reading
from spark_app.installation import annexes
from spark_app.local_files import write_atomic
from spark_app.report import formatting
from spark_app.report.formatting import Mood
from spark_app.report.limits import MAX_BYTES, Limits
from spark_app.report.links import links
from spark_app.report.run_info import RunInfo
from spark_app.report.scope import Scope, scope
from spark_app.report.section import Section, Subject, left_out
from spark_app.report.sections.capacity import capacity
from spark_app.report.sections.columns import columns
from spark_app.report.sections.configuration import configuration
from spark_app.report.sections.connect import connect
from spark_app.report.sections.executors import executors
from spark_app.report.sections.findings import findings as findings_of
from spark_app.report.sections.headline import headline, unread
from spark_app.report.sections.memory import memory
from spark_app.report.sections.queries import queries
from spark_app.report.sections.replays import Replays, replays
from spark_app.report.sections.run import logs, quality
from spark_app.report.sections.stack_samples import stack_samples
from spark_app.report.sections.stages import stages
from spark_app.report.sections.streams import streams
from spark_app.report.sections.timeline import ticks, timeline
from spark_app.report.sections.unexplained import unexplained
from spark_app.settings import Backends, Prices
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


def _is_of_model(about: Subject) -> bool:
    return about.scope.run is not None and about.scope.run.card is not None


def _has_samples(about: Subject) -> bool:
    return stack_samples(about.scope, about.stacks, about.limits) is not None


SECTIONS: Final = (
    Section("memory", lambda about: memory(about.scope), is_part=True),
    Section("capacity", lambda about: capacity(about.scope, about.prices), is_part=True),
    Section("headline", lambda about: headline(about.scope)),
    left_out("model", "Model", annex="model_page", would_show=_is_of_model),
    Section("findings", lambda about: findings_of(about.scope, about.findings, about.limits), "Findings"),
    Section("compared", lambda about: about.compared or False, "Slower?"),
    Section("connect", lambda about: connect(about.scope, about.limits, about.prices), "Connect"),
    Section("streams", lambda about: streams(about.scope, about.limits), "Streams"),
    Section("timeline", lambda about: timeline(about.scope, about.limits), "Timeline"),
    Section("stages", lambda about: stages(about.scope, about.limits), "Stages"),
    left_out("stacks", "Stacks", annex="flames", would_show=_has_samples),
    Section("queries", lambda about: queries(about.scope, about.limits), "SQL"),
    Section("executors", lambda about: executors(about.scope, about.limits), "Executors"),
    Section("replays", lambda about: about.replays, "What if", id="what-if"),
    Section("quality", lambda about: quality(about.scope) or (None if about.scope.run is None else False), "Quality"),
    Section("columns", lambda about: columns(about.scope, about.limits) or None, "Columns"),
    Section("configuration", lambda about: configuration(about.scope, about.limits), "Configuration"),
    Section("logs", lambda about: logs(about.scope, about.limits), "Logs"),
)
"""Those of a report, in the order of the page. An annex's section of the same name stands in the place of one."""
NO_HEADLINE: Final = SimpleNamespace(outcome="outcome not known", mood="unsure", error=None, figures=None)
"""Stands above a page whose headline raised."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The page around the sections.

    Attributes:
        template: Its template.
        first: Sections that stand before those of a report.
        content: What its template needs besides.
        is_live: Whether the page follows the application.
    """

    template: str
    first: Sequence[Section] = ()
    content: Mapping[str, Any] = field(default_factory=dict)
    is_live: bool = False


REPORT: Final = Frame("page.html.j2")


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
        compared: How the application compares with earlier ones; None without earlier ones.
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
    stacks: StackProfile | None = None,
    frame: Frame = REPORT,
) -> bytes:
    """The page, below 5 MB: as long as it is larger, half of everything is listed."""
    subject = Subject(about, ranked, Limits(), compared, prices, replayed, stacks)
    shared = {
        "app": reading.app,
        "reading": reading,
        "scope": about,
        "written": datetime.now(UTC).timestamp() * 1000,
        "links": links(about, backends),
        "ticks": ticks(about.period.length),
        "unexplained": reading.app.failed_parts.get(
            "section unexplained", lambda: unexplained(about, ranked, stacks), None
        ),
    }
    while True:
        content = _rendered(reading, subject, shared, frame)
        halved = subject.limits.halved()
        if len(content) <= MAX_BYTES or subject.limits == halved:
            return content
        subject = replace(subject, limits=halved)


def _rendered(reading: Reading, subject: Subject, shared: Mapping[str, Any], frame: Frame) -> bytes:
    """The page around the sections, which are rendered before: its remarks name those that raised."""
    failed, shown = reading.app.failed_parts, dict[str, Markup]()
    sections = sections_of(frame)
    made = {each.name: failed.get(f"section {each.name}", partial(each.make, subject), None) for each in sections}
    content = {**shared, **made, **frame.content, "shown": shown, "limits": subject.limits, "is_live": frame.is_live}
    content |= {"sections": sections, "top": content["headline"] or NO_HEADLINE}
    content |= assets(each for each in sections if frame.is_live or made[each.name] is not None)
    for each in sections:
        if content[each.name] is not None:
            make = partial(_section, each, content)
            shown[each.name] = failed.get(f"section {each.name}", make, Markup())
    remarks = unread(reading, subject.scope, is_live=frame.is_live)
    return environment().get_template(frame.template).render(content, unread=remarks).encode("utf-8", "replace")


def sections_of(frame: Frame) -> list[Section]:
    """All sections, in the order of the page."""
    return [*frame.first, *{each.name: each for each in (*SECTIONS, *annexes.added(Section))}.values()]


class Script(NamedTuple):
    """A script in a page, and its source as a Content-Security-Policy allows it."""

    text: Markup
    source: str


@cache
def script(file: Path) -> Script:
    """The script of a file."""
    text = file.read_text(encoding="utf-8")
    return Script(Markup(text), source_of(text))


@cache
def style(file: Path) -> Markup:
    """The style sheet of a file."""
    return Markup(file.read_text(encoding="utf-8"))


def assets(sections: Iterable[Section]) -> dict[str, Any]:
    """The scripts and the style sheets that sections need, as templates of pages include them."""
    needed = list(sections)
    return {
        "scripts": [script(each.script) for each in needed if each.script],
        "styles": [style(each.style) for each in needed if each.style],
    }


def _section(section: Section, content: Mapping[str, Any]) -> Markup:
    template = environment().get_template(section.template or f"{section.name}.html.j2")
    return Markup(template.render(content, section=section, section_content=content[section.name]).strip())


@cache
def environment() -> jinja2.Environment:
    """Templates, also of annexes, that escape everything but our own style and script; formats are filters."""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package) for package in _packages_with_templates()]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (FOLDER / "script.js").read_text(encoding="utf-8")
    environment.filters |= {name: getattr(formatting, name) for name in FILTERS}
    environment.globals |= {
        "style": Markup((FOLDER / "style.css").read_text(encoding="utf-8")),
        "script": Markup(script),
        "script_source": source_of(script),
        "amount": formatting.amount,
        "limit": formatting.limit,
    }
    return environment


def _packages_with_templates() -> list[str]:
    packages = [f"{annexes.PACKAGE}.{name}" for name in annexes.installed()]
    return ["spark_app.report", *(each for each in packages if resources.files(each).joinpath("templates").is_dir())]


def source_of(script: str) -> str:
    """A script as a Content-Security-Policy allows it: by its hash."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
