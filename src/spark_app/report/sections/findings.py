"""Findings of the diagnoses about what a report covers, worst first, and each as Markdown for a ticket or a chat."""

from collections.abc import Iterator
from dataclasses import dataclass

from spark_app.eventlog.findings import Finding
from spark_app.report import formatting
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings about a scope; `total` counts those that are not listed, too; `about` names what they are about."""

    shown: list[Finding]
    total: int
    about: str

    def markdown(self, finding: Finding) -> str:
        """A finding with its evidence, its advice and where it was found."""
        return "\n".join(self._lines(finding))

    def _lines(self, finding: Finding) -> Iterator[str]:
        yield f"**{finding.severity}: {formatting.words(finding.rule)}.** {_escaped(finding.text)}"
        yield from ("", f"**Change:** {_escaped(finding.advice)}", "")
        if finding.cost:
            yield f"- costs {finding.cost}"
        for name, number in finding.numbers.items():
            yield f"- {_escaped(formatting.words(name))}: {formatting.amount(name, number)}"
        for name, number in finding.limits.items():
            yield f"- limit {_escaped(formatting.words(name))}: {formatting.limit(name, number)}"
        if finding.operator:
            yield f"- operator: {_escaped(finding.operator)}"
        is_placed = any(place is not None for place in (finding.stage, finding.query, finding.stream))
        yield f"- found in {_escaped(str(finding.place)) + ' of ' if is_placed else ''}{self.about}"


def findings(scope: Scope, ranked: list[Finding], limits: Limits) -> Findings:
    """As many of the findings about the scope as there is room for, in the order of the diagnoses."""
    return Findings(ranked[: limits.findings], len(ranked), _escaped(_about(scope)))


def _about(scope: Scope) -> str:
    run = [f"run {scope.run.folder.name}"] if scope.run else []
    return ", ".join([scope.title, *run, f"application {scope.app.id}"])


def _escaped(text: str) -> str:
    """Text from a log as the report shows it, which Markdown leaves as it is."""
    return formatting.escaped(formatting.text(text, 800))
