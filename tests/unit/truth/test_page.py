"""docs/accuracy.md is what the command writes, and each miss of the open part has an explanation."""

from truth import judge, page, scores


def test_the_page_is_what_the_command_writes() -> None:
    """After a change of a rule, a run or an explanation: python -m truth accuracy."""
    assert page.PAGE.read_text(encoding="utf-8") == page.markdown()


def test_each_open_miss_is_explained_and_nothing_else() -> None:
    """In truth/misses.toml."""
    missed = {each.name for each in page.misses(scores.read(judge.output()))}
    assert page.explanations().keys() == missed
