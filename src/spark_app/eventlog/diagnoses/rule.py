"""What is declared of a rule above its function; the rules are the modules of the package `rules`, one in each."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final, Literal, TypeVar

from spark_app.eventlog.diagnoses.trials import Trial
from spark_app.eventlog.findings import Severity, Subject

MIB: Final = 1024**2
GIB: Final = 1024**3
MAX_FINDINGS: Final = 5
"""How many findings of one rule a query has at most, or an application of a rule that ranks its own: the worst ones.

Programs can generate plans with thousands of operators.
"""
Check = TypeVar("Check", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Limit:
    """A threshold of a rule, which is a key of `config/diagnoses.yml`.

    Attributes:
        default: In milliseconds, bytes, or as a share from 0 to 1, as its name says; or pairs of them.
        meaning: A sentence for docs/reference.md and the file.
        ge, gt, le: The bounds of what may be configured: at least, more than, at most.
    """

    default: float | tuple[tuple[int, int], ...]
    meaning: str
    ge: float | None = None
    gt: float | None = None
    le: float | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """The alert that fires while a rule has findings: `prometheus/rules/diagnoses.yml` is written from it.

    Attributes:
        name: Of the alert; several rules may have one.
        text: Its description, with `{application}`; empty where another rule of the same alert has it.
        severity: Its label; of a warning, only findings that are warnings raise it.
    """

    name: str
    text: str = ""
    severity: Severity = "warning"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; the docstring of its function is its part of docs/diagnoses.md.

    Attributes:
        subject: What it is about: other data, or another host, would not have the finding.
        adds: The numbers that are added over the places of a cause: amounts of work, each done at one place only. All
            others are those of the worst place, as in its text. The files and the partitions of a table are the same in
            each query that reads it, the sides of joins are compared with thresholds one by one, and parts of a share
            go with it.
        reports_always: Whether it reports at any cost: as an info, and from the least cost on as a warning.
        more_than: Of a rule without a cost: the number whose sum over the places must exceed a limit, and that.
        explains: The rules whose findings at its places are consequences of it: they follow it, whatever they cost.
        explains_in: Whether they must be in the same stage or the same query, or may be anywhere in the application.
        limits: Its thresholds, by their keys in `config/diagnoses.yml`.
        cause: The cause of `truth/vocabulary.toml` that it stands for; empty where that has its name.
        tries: What `spark-app tune` tries because of it.
        alert: The alert that its findings raise, if any.
        comes_first: Whether its finding comes before all others.
        is_symptom: Of a rule about streams: whether its finding says that a query is late, of which others say why.
        judges_few_batches: Of a rule about streams: whether it judges a query with few batches.
        check: Its function: from a view, or an application and the limits, to findings.
    """

    subject: Subject = "job"
    adds: tuple[str, ...] = ()
    reports_always: bool = False
    more_than: tuple[str, str] | None = None
    explains: tuple[str, ...] = ()
    explains_in: Literal["stage", "query", "application"] = "stage"
    limits: Mapping[str, Limit] = field(default_factory=dict)
    cause: str = ""
    tries: tuple[Trial, ...] = ()
    alert: Alert | None = None
    comes_first: bool = False
    is_symptom: bool = False
    judges_few_batches: bool = False
    check: Callable[..., Any] = list

    def __call__(self, check: Check) -> Check:
        """Registers a function under this."""
        _RULES[check.__name__] = replace(self, check=check)
        return check

    @property
    def view(self) -> type:
        """What it judges: the type of the first parameter of its function."""
        first: type = next(iter(inspect.signature(self.check).parameters.values())).annotation
        return first

    @property
    def name(self) -> str:
        """That of its function, of its findings, and of its heading in docs/diagnoses.md."""
        return self.check.__name__


_RULES: Final[dict[str, Rule]] = {}
_UNKNOWN: Final = Rule()
rule: Final = Rule
"""Declares a function as a rule: `@rule(subject="data", ...)`."""


@cache
def rules() -> Mapping[str, Rule]:
    """All rules by their names, in the order of these."""
    package = import_module("spark_app.eventlog.diagnoses.rules")
    for module in sorted(iter_modules(package.__path__), key=lambda each: each.name):
        import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_RULES.items()))


def rule_of(name: str) -> Rule:
    """The rule of a finding; one that declares nothing for an unknown name."""
    return rules().get(name, _UNKNOWN)
