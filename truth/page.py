"""docs/accuracy.md: how often spark-app is right, with each miss of the open part and why."""

import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from truth.answers import BUSY_CORES
from truth.declared import HERE
from truth.scores import CLOSE, KEYS, Judged, Score, grouped, totals

PAGE: Final = HERE.parent / "docs" / "accuracy.md"
FEW_ROUNDS: Final = 3
"""With fewer on a calm machine, what a fix saved is not known well."""


def markdown(score: Score) -> str:
    """The whole page, of the score of spark-app."""
    tested = [each for each in score.open if each.answer.developed_on]
    made = [each for each in score.open if not each.answer.developed_on]
    template = _templates().get_template("accuracy.md.j2")
    return template.render(
        runs=2 * (len(score.open) + score.sealed.pairs),
        ranges={"open": totals(made).ranges, "sealed": score.sealed.ranges},
        parts={"open": totals(made), "sealed": score.sealed, "tests of rules": totals(tested)},
        timed=len(made),
        observed=sum(each.answer.rounds[each.answer.kept].observed for each in made),
        few=sum(len(each.answer.calm) < FEW_ROUNDS for each in made),
        busy_cores=BUSY_CORES,
        few_rounds=FEW_ROUNDS,
        groups={title: grouped(score.open, key) for title, key in KEYS.items()},
        misses=misses(score),
        why=defaultdict(str, explanations()),
        costs=[each for each in score.open if each.error is not None and abs(each.error) > CLOSE],
    )


def summary(score: Score) -> str:
    """How often spark-app is right, in the words of the README: open and sealed pairs together."""
    made = totals([each for each in score.open if not each.answer.developed_on])
    pairs = made.pairs + score.sealed.pairs

    def percent(name: str) -> str:
        return f"{100 * (getattr(made, name).right + getattr(score.sealed, name).right) / pairs:.0f} %"

    return (
        f"Of {pairs} programs with a planted cause, the first finding names it in {percent('first')}, and in "
        f"{percent('exact')} nothing else is said; {percent('alarms')} of their twins without it have a false alarm."
    )


def misses(score: Score) -> list[Judged]:
    """The pairs whose causes, twin or place the tool has wrong."""
    return [each for each in score.open if each.is_miss]


def explanations(folder: Path = HERE) -> dict[str, str]:
    """Why a pair is a miss, by its name."""
    return {str(name): str(why) for name, why in tomllib.loads((folder / "misses.toml").read_text("utf-8")).items()}


def _templates() -> Environment:
    loader = FileSystemLoader(HERE)
    return Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
