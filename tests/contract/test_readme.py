"""What the README and its further pages tell a reader to type exists; `make test-readme` runs it."""

import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.__main__ import command_line, spelled_out
from tests.readme import PAGES, ROOT, commands

COMMAND: Final[Any] = command_line()
TARGETS: Final = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
PROGRAM: Final = re.compile(r"(?:^|\s)(?:spark-app|app/__main__\.py) (.+)$")


@pytest.mark.parametrize("command", commands())
def test_a_command_exists(command: str) -> None:
    """Its make target, its script, or its verb and options do."""
    words = shlex.split(command)
    if words[0] == "make":
        assert words[1] in TARGETS
        return
    if words[0].startswith("./"):
        assert (ROOT / words[0]).stat().st_mode & 0o100
        return
    ours = PROGRAM.search(command)
    assert ours or words[0] in ("source", "uv"), command
    if ours:
        _, verb, rest = COMMAND.resolve_command(COMMAND.make_context("spark-app", ["tables"]), parts(ours[1]))
        verb.make_context("spark-app", rest)


def parts(arguments: str) -> list[str]:
    """Arguments as the program takes them, with an instant for what a shell would work out."""
    given = shlex.split(re.sub(r"\$\(.+?\)", "2024-01-31T08:00:00", arguments))
    return spelled_out(given, COMMAND.commands)


def test_the_first_commands_are_those_of_a_newcomer() -> None:
    """They set up everything by themselves, so nothing may stand before them."""
    assert commands()[:4] == ["make run-etl DATE=2024-01-01", "make run-streaming", "make run-ml", "make test"]


@pytest.mark.parametrize("page", PAGES)
def test_a_link_leads_somewhere(page: str) -> None:
    """To a file that is there, and to a heading that it has."""
    for link in re.findall(r"\]\(([^)]+)\)", PAGES[page]):
        file, _, anchor = link.partition("#")
        target = ROOT / page if not file else (ROOT / page).parent / file
        assert link.startswith("https://") or target.exists(), link
        assert not anchor or target.suffix != ".md" or anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
