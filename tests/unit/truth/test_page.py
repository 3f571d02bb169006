"""docs/accuracy.md is what the command writes, and each miss of the open part has an explanation."""

import pytest

from truth import judge, page, scores


@pytest.fixture(scope="module")
def score() -> scores.Score:
    """How spark-app does with all runs."""
    return scores.read(judge.output())


def test_the_page_is_what_the_command_writes(score: scores.Score) -> None:
    """After a change of a rule, a run or an explanation: python -m truth accuracy."""
    assert page.PAGE.read_text(encoding="utf-8") == page.markdown(score)


def test_the_readme_has_the_figures(score: scores.Score) -> None:
    """As of the page."""
    readme = " ".join((page.PAGE.parents[1] / "README.md").read_text(encoding="utf-8").split())
    assert page.summary(score) in readme


def test_each_open_miss_is_explained_and_nothing_else(score: scores.Score) -> None:
    """In truth/misses.toml."""
    assert page.explanations().keys() == {each.name for each in page.misses(score)}
