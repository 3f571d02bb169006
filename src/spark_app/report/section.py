"""A section of a page about an application: what makes its content, and how it is called.

An annex adds sections of its own. One that the core names, as `left_out` does, stands where the core has it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_app.installation import annexes

if TYPE_CHECKING:
    from spark_app.eventlog.comparison.compare import Comparison
    from spark_app.eventlog.findings import Finding
    from spark_app.report.limits import Limits
    from spark_app.report.scope import Scope
    from spark_app.report.sections.replays import Replays
    from spark_app.settings import Prices
    from spark_app.stack_samples.stack_profile import StackProfile


@dataclass(frozen=True, slots=True)
class Subject:
    """What a page is about.

    Attributes:
        scope: An application, or a run in it.
        findings: About it, worst first.
        limits: How much of each is listed.
        compared: How the application compares with earlier ones; None without earlier ones.
        prices: What executors cost.
        replays: Blocked time and forecasts; None where there is nothing to replay.
        stacks: Samples of its stacks.
    """

    scope: "Scope"
    findings: "list[Finding]"
    limits: "Limits"
    compared: "Comparison | None" = None
    prices: "Prices | None" = None
    replays: "Replays | None" = None
    stacks: "StackProfile | None" = None


@dataclass(frozen=True, slots=True)
class Section:
    """A section.

    Attributes:
        name: What templates and remarks call it; a template finds the content by it.
        make: Its content; None where it has nothing to show.
        title: What the bar of links calls it; empty for one that is not in the bar.
        id: Its id in the page; without one, its name.
        template: Its template; without one, that of its name.
        is_part: Whether another section shows it.
        script: The file of a script that it needs.
        style: The file of a style sheet that it needs.
    """

    name: str
    make: Callable[[Subject], Any]
    title: str = ""
    id: str = ""
    template: str = ""
    is_part: bool = False
    script: Path | None = None
    style: Path | None = None


def left_out(name: str, title: str, *, annex: str, would_show: Callable[[Subject], bool]) -> Section:
    """What stands in the place of an annex's section without that annex: a sentence about what is missing.

    Args:
        name: Of the section.
        title: Of the section.
        annex: Its annex.
        would_show: Whether it would have something to show.
    """
    sentence = annexes.missing(annex, f"The section {title} is one")
    return Section(name, lambda about: sentence if would_show(about) else None, title, template="left_out.html.j2")
