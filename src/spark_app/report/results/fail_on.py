"""The conditions of `--fail-on`, and which of them hold for what a command found."""

import re
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NamedTuple

from msgspec.structs import replace

from spark_app.errors import FailOnError
from spark_app.eventlog.comparison.compare import Comparison
from spark_app.eventlog.diagnoses.rule import rules
from spark_app.eventlog.findings import Subject
from spark_app.formatting import duration, quantity, share, size
from spark_app.report.limits import Limits
from spark_app.report.parts import Figures
from spark_app.report.results.schema import Application, Error, Failed, Finding, Results

WARNING: Final = "warning"
SUBJECTS: Final[tuple[Subject, ...]] = typing.get_args(Subject)
FIGURES: Final = (
    "core_hours", "price", "tasks", "failed_tasks", "rows_read", "rows_written", "bytes_read", "bytes_written",
    "shuffled_bytes", "spilled_bytes",
)  # fmt: skip
"""The figures of an application that a condition can bound, named as in the JSON document."""
SLOWER: Final = re.compile(r"slower:(\d{1,6}(?:\.\d+)?)%", re.ASCII)
LIMIT: Final = re.compile(r"(more|fewer):([a-z_]+):(\d{1,15}(?:\.\d{1,6})?)(KiB|MiB|GiB|TiB)?", re.ASCII)
_UNITS: Final = {None: 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
MAX_FINDINGS: Final = Limits().findings
"""Findings of an application in a document: those that its report shows."""
RULES: Final = frozenset(rules())


class Bound(NamedTuple):
    """A figure must not be above, or not be below, a number."""

    figure: str
    number: float
    is_most: bool

    def reason(self, figures: Figures) -> str | None:
        """Why an application fails; None if it does not. What is unknown cannot be judged, and fails."""
        value = getattr(figures, self.figure)
        if value is None:
            return f"cannot be judged: {_why_unknown(self.figure)}"
        if value <= self.number if self.is_most else value >= self.number:
            return None
        return (
            f"{self.figure} {self._shown(value)}, {'more' if self.is_most else 'fewer'} than {self._shown(self.number)}"
        )

    def _shown(self, value: float) -> str:
        return size(value) if "bytes" in self.figure else f"{value:,.10g}"


def _why_unknown(figure: str) -> str:
    if figure == "price":
        return "no price, set prices.core_hour in config/app.yml"
    return f"the event log has no {figure}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition.

    Attributes:
        text: As it is given on the command line.
        slower: The ratio by which a run must be slower, None if it is no condition on the duration.
        bound: What a figure must keep, None if it is no condition on a figure.
    """

    text: str
    slower: float | None = None
    bound: Bound | None = None

    def __str__(self) -> str:
        """As it is given on the command line."""
        return f"--fail-on {self.text}"


def parse(text: str) -> Condition:
    """The condition that a text names, such as `warning`, `host`, `spill`, `slower:20%` or `more:tasks:50000`.

    Raises:
        ValueError: It names none.
    """
    slower = SLOWER.fullmatch(text)
    if slower:
        return Condition(text, float(slower[1]) / 100)
    if text == WARNING or text in SUBJECTS or text in RULES:
        return Condition(text)
    limit = LIMIT.fullmatch(text)
    if limit:
        return Condition(text, bound=_bound(text, *limit.groups()))
    close = get_close_matches(text, [*RULES, *SUBJECTS, WARNING], 1)
    near = f"; did you mean {close[0]}?" if close else ""
    raise ValueError(
        f"{text!r} is neither warning, job, data or host, nor a rule of docs/diagnoses.md, nor a limit such as "
        f"slower:20%, more:spilled_bytes:1GiB or fewer:rows_written:1{near}"
    )


def _bound(text: str, word: str, figure: str, number: str, unit: str | None) -> Bound:
    if figure not in FIGURES:
        raise ValueError(f"{text!r} names no figure: {figure} is none of {', '.join(FIGURES)}")
    if unit and "bytes" not in figure:
        raise ValueError(f"{text!r} has a size, and {figure} is no size in bytes: leave {unit} out")
    return Bound(figure, float(number) * _UNITS[unit], is_most=word == "more")


def with_failed_conditions(results: Results, conditions: Sequence[Condition]) -> Results:
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
    return replace(application, findings=application.findings[:MAX_FINDINGS])


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
    if condition.bound is not None:
        return condition.bound.reason(application.figures)
    return _reason(condition, application.findings, application.comparison)


def _reason(condition: Condition, findings: Sequence[Finding], compared: Comparison | None) -> str | None:
    """Why a condition holds; None if it does not."""
    if condition.slower is not None:
        return _slower(condition.slower, compared)
    if condition.text == WARNING:
        return _warnings([finding for finding in findings if finding.subject != "host"])
    if condition.text in SUBJECTS:
        return _warnings([finding for finding in findings if finding.subject == condition.text])
    return next((finding.text for finding in findings if finding.rule == condition.text), None)


def _warnings(findings: Sequence[Finding]) -> str | None:
    """The rules of the findings that are warnings; None without any."""
    rules = [finding.rule for finding in findings if finding.severity == WARNING]
    return f"{quantity(len(rules), 'warning')} ({', '.join(dict.fromkeys(rules))})" if rules else None


def _slower(ratio: float, compared: Comparison | None) -> str | None:
    """A difference below the noise threshold never fails."""
    if compared is None or not compared.is_significant or (compared.difference_ratio or 0) <= ratio:
        return None
    now, before = duration(compared.now_ms), duration(compared.before_ms)
    return f"{share(compared.difference_ratio)} slower, {now}, before {before}"
