"""Decisions are short enough to be read, and say what the tree says."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.contract.violations import violations

ROOT: Final = Path(__file__).parents[2]
DECISIONS: Final = ROOT / "docs" / "decisions"
MAX_WORDS: Final = 700
MAX_LINES: Final = 60


def test_a_decision_is_one_page() -> None:
    """What was measured stands in docs/benchmarks.md, and how it came about in the commits."""

    def rule(path: Path) -> Iterator[str]:
        text = path.read_text(encoding="utf-8")
        if (words := len(text.split())) > MAX_WORDS:
            yield f"{words} words, more than {MAX_WORDS}"
        if (lines := text.count("\n")) > MAX_LINES:
            yield f"{lines} lines, more than {MAX_LINES}"

    assert violations(rule, sorted(DECISIONS.glob("*.md"))) == []


def test_the_decision_about_floors_has_those_of_the_contract() -> None:
    """Its table has the rooms of each floor as `lint-imports` holds them, the highest floor first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {each["id"]: each for each in project["tool"]["importlinter"]["contracts"]}
    layers = [set(layer.split(" | ")) for layer in contracts["rooms"]["layers"]]
    text = (DECISIONS / "0009-floors-of-the-house.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == [*range(len(layers), 0, -1)]
    assert [set(re.findall(r"`(\w+)`", rooms)) for _, rooms in rows] == layers
