from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import pytest

from spark_app.declarations import flat_code

CODE = """
def shown(rows, limit):
    kept = [row for row in rows if row.amount > limit and row.day]
    try:
        return kept[0] if kept and limit else None
    except IndexError as error:
        raise ValueError("none") from error
"""
Steps = list[flat_code.Step]


@pytest.fixture
def steps_of(tmp_path: Path) -> Callable[[str], Steps]:
    """What a function of a file does."""

    def of(text: str) -> Steps:
        file = tmp_path / f"f{len(list(tmp_path.iterdir()))}.py"
        file.write_text(text, encoding="utf-8")
        names: dict[str, FunctionType] = {}
        exec(compile(text, str(file), "exec"), names)
        code = flat_code.of_function(names["shown"].__code__)
        own = [each for each in flat_code.steps(code) if not hasattr(each.value, "co_code")]
        return own + [each for inner in flat_code.nested(code) for each in flat_code.steps(inner)]

    return of


SAME = {
    "lines": CODE.replace("kept and limit", "(\n            kept\n\n            and limit\n        )"),
    "comments": CODE.replace("    try:", "    # tried\n    try:  # and kept"),
    "a local name": CODE.replace("kept", "found"),
    "a docstring": CODE.replace("limit):\n", 'limit):\n    """One row."""\n'),
    "types": CODE.replace("rows, limit)", "rows: list, limit: 'int') -> object").replace("kept =", "kept: list ="),
    "another place": f"import os\n\n\n{CODE}",
}
OTHER = {
    "a constant": CODE.replace("kept[0]", "kept[1]"),
    "an attribute": CODE.replace("row.day", "row.hour"),
    "an operator": CODE.replace(">", ">="),
    "a handled exception": CODE.replace("except IndexError", "except KeyError"),
    "two variables change places": CODE.replace("row for row in rows if", "row for row in limit if"),
    "the end of what is tried": CODE.replace("    try:\n", "    limit = limit + 0\n    try:\n"),
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_matter_is_left_out(steps_of: Callable[[str], Steps], name: str) -> None:
    """The steps are the same."""
    assert SAME[name] != CODE
    assert steps_of(SAME[name]) == steps_of(CODE)


@pytest.mark.parametrize("name", OTHER)
def test_what_does_something_else_has_other_steps(steps_of: Callable[[str], Steps], name: str) -> None:
    """In the order of what is done."""
    assert OTHER[name] != CODE
    assert steps_of(OTHER[name]) != steps_of(CODE)


def test_code_whose_file_was_edited_since_is_what_python_has(tmp_path: Path) -> None:
    """As in a notebook that is open for days: what runs is looked at, and not what the file says by now."""
    file = tmp_path / "edited.py"
    file.write_text("def shown():\n    return 1\n", encoding="utf-8")
    names: dict[str, FunctionType] = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), names)
    code = names["shown"].__code__
    assert flat_code.of_function(code) is not code
    file.write_text("def shown():\n    return 2 \n", encoding="utf-8")
    assert flat_code.of_function(code) is code
