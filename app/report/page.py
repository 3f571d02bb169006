"""One self-contained HTML file on one application, or on one run of ours."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import jinja2
from markupsafe import Markup

from app.eventlog.diagnoses.diagnose import diagnose
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.findings import Finding
from app.eventlog.reading import Reading
from app.folders import put
from app.report import amounts
from app.report.limits import MAX_BYTES, Limits
from app.report.links import links
from app.report.runs import RunInfo
from app.report.scope import Scope, scope
from app.report.sections.configuration import configuration
from app.report.sections.executors import executors
from app.report.sections.findings import findings
from app.report.sections.functions import functions
from app.report.sections.headline import headline
from app.report.sections.logs import logs
from app.report.sections.quality import quality
from app.report.sections.queries import queries
from app.report.sections.stages import stages
from app.report.sections.timeline import timeline
from app.report.sections.troubles import troubles
from app.settings import Backends

FOLDER: Final = resources.files("app.report")
FILTERS: Final = ("count", "things", "size", "duration", "tick", "share", "times", "moment", "text", "line", "words")


def write(
    reading: Reading,
    *,
    output: Path,
    run: RunInfo | None = None,
    compared: Sequence[str] = (),
    found: list[Finding] | None = None,
    backends: Backends | None = None,
) -> Path:
    """Puts the report in place, whole or not at all, and gives its path.

    Args:
        reading: The event log.
        output: The file; its folder is made if need be.
        run: The run of ours that the report is about; without one it is about the whole application.
        compared: How long it took beside earlier runs, then where the difference went, worst first.
        found: What is found in the application, worst first; by the default thresholds if not given.
        backends: Where traces and dashboards are, to link to them.

    Raises:
        OSError: The file cannot be written.
    """
    found = diagnose(reading.app, Thresholds()) if found is None else found
    put(output, html(reading, run=run, found=found, compared=compared, backends=backends))
    return output


def html(
    reading: Reading,
    *,
    run: RunInfo | None,
    found: list[Finding],
    compared: Sequence[str],
    backends: Backends | None,
) -> bytes:
    """The report, below 5 MB: with half of everything listed, and half again, until it is."""
    about, limits = scope(reading.app, run), Limits()
    while True:
        shared = {"found": found, "compared": list(compared), "links": links(about, backends)}
        content = _rendered({**_sections(reading, about, found, limits), **shared, "limits": limits})
        if len(content) <= MAX_BYTES or limits == limits.halved():
            return content
        limits = limits.halved()


def _sections(reading: Reading, about: Scope, found: list[Finding], limits: Limits) -> dict[str, Any]:
    return {
        "reading": reading,
        "scope": about,
        "app": reading.app,
        "made": datetime.now(UTC).timestamp() * 1000,
        "troubles": troubles(reading, about),
        "headline": headline(about),
        "findings": findings(about, found, limits),
        "timeline": timeline(about, limits),
        "stages": stages(about, limits),
        "functions": functions(about, limits, events=reading.log.parent),
        "queries": queries(about, limits),
        "executors": executors(about, limits),
        "quality": quality(about),
        "configuration": configuration(about, limits),
        "logs": logs(about, limits),
    }


def _rendered(content: Mapping[str, Any]) -> bytes:
    return environment().get_template("page.html.j2").render(content).encode("utf-8", "replace")


@cache
def environment() -> jinja2.Environment:
    """Templates that escape everything; the style and the script are ours, and go in as they are."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("app.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (FOLDER / "script.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.filters |= {name: getattr(amounts, name) for name in FILTERS}
    environment.globals |= {
        "style": Markup((FOLDER / "style.css").read_text(encoding="utf-8")),
        "script": Markup(script),
        "script_source": f"'sha256-{digest}'",
        "amount": amounts.amount,
    }
    return environment
