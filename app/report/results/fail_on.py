"""The conditions of `--fail-on`, and which of them hold for what a command found."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from msgspec.structs import replace

from app.errors import FailOnError
from app.eventlog.diagnoses.diagnose import APPLICATION_RULES, QUERY_RULES, STAGE_RULES, STREAM_RULES
from app.formatting import duration, quantity, share
from app.report.limits import Limits
from app.report.results.schema import Application, Comparison, Error, Failed, Finding, Results

WARNING: Final = "warning"
SLOWER: Final = re.compile(r"slower:(\d{1,6}(?:\.\d+)?)%", re.ASCII)
MOST_FINDINGS: Final = Limits().findings
"""Findings of an application in a document: those that its report shows."""
_RULES: Final[Sequence[Callable[..., Any]]] = (*STAGE_RULES, *QUERY_RULES, *STREAM_RULES, *APPLICATION_RULES)
RULES: Final = frozenset(rule.__name__ for rule in _RULES)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition; `slower` is the ratio by which a run must be slower, None for a condition on findings."""

    text: str
    slower: float | None = None

    def __str__(self) -> str:
        """As it is given on the command line."""
        return f"--fail-on {self.text}"


def parse(text: str) -> Condition:
    """The condition that a text names: `warning`, a rule of docs/diagnoses.md, or `slower:20%`.

    Raises:
        ValueError: It names none.
    """
    slower = SLOWER.fullmatch(text)
    if slower:
        return Condition(text, float(slower[1]) / 100)
    if text == WARNING or text in RULES:
        return Condition(text)
    close = get_close_matches(text, RULES, 1)
    near = f"; did you mean {close[0]}?" if close else ""
    raise ValueError(f"{text!r} is neither warning, nor a rule of docs/diagnoses.md, nor slower:20%{near}")


def judged(results: Results, conditions: Sequence[Condition]) -> Results:
    """The same with the conditions that hold, and the worst findings of all that were judged.

    An exit code of 0 becomes that of `FailOnError`.
    """
    failed = [each for condition in conditions for each in _failed(condition, results)]
    results = replace(results, applications=[_cut(each) for each in results.applications])
    if not failed:
        return results
    error = results.error or Error(FailOnError.__name__, sentence(failed))
    return replace(results, failed_on=failed, error=error, exit_code=results.exit_code or FailOnError.exit_code)


def _cut(application: Application) -> Application:
    return replace(application, findings=application.findings[:MOST_FINDINGS])


def sentence(failed: Sequence[Failed]) -> str:
    """One line about all conditions that hold."""
    has_several = len({each.application for each in failed}) > 1
    return "; ".join(
        f"--fail-on {each.condition}: {each.reason}{f' ({each.application})' if has_several else ''}" for each in failed
    )


def without_baseline(results: Results, conditions: Sequence[Condition]) -> Iterator[str]:
    """A sentence for each condition and application that no earlier run can be compared with."""
    for condition in conditions:
        for application in results.applications:
            if condition.slower is not None and application.comparison is None:
                yield f"{condition}: not judged, {application.name} has no earlier successful run to compare with"


def _failed(condition: Condition, results: Results) -> Iterator[Failed]:
    """Where a condition holds; what cannot be judged fails, but for a first run, which cannot be slower."""
    if results.command == "compare":
        reason = _reason(condition, [], results.comparison)
        yield from [Failed(condition.text, reason, None)] if reason else []
        return
    trouble = _trouble(results)
    if trouble:
        yield Failed(condition.text, f"cannot be judged: {trouble}", None)
    for application in results.applications:
        reason = _of_application(condition, application)
        yield from [Failed(condition.text, reason, application.id)] if reason else []


def _trouble(results: Results) -> str | None:
    if results.error is not None:
        return results.error.message
    return None if results.applications else "no Spark application was observed"


def _of_application(condition: Condition, application: Application) -> str | None:
    return _reason(condition, application.findings, application.comparison)


def _reason(condition: Condition, findings: Sequence[Finding], compared: Comparison | None) -> str | None:
    """Why a condition holds; None if it does not."""
    if condition.slower is not None:
        return _slower(condition.slower, compared)
    if condition.text == WARNING:
        warnings = [finding.rule for finding in findings if finding.severity == WARNING]
        return f"{quantity(len(warnings), 'warning')} ({', '.join(dict.fromkeys(warnings))})" if warnings else None
    return next((finding.text for finding in findings if finding.rule == condition.text), None)


def _slower(ratio: float, compared: Comparison | None) -> str | None:
    """A difference below the noise threshold never fails."""
    if compared is None or not compared.is_significant or (compared.difference_ratio or 0) <= ratio:
        return None
    now, before = duration(compared.now_ms), duration(compared.before_ms)
    return f"{share(compared.difference_ratio)} slower, {now}, before {before}"
