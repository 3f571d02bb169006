"""The command says what is wrong in one line, and judges what it wrote itself."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from truth.__main__ import cli


def test_what_judge_writes_is_scored(tmp_path: Path) -> None:
    """By totals, and by cause, form and version."""
    output = tmp_path / "output.json"
    assert CliRunner().invoke(cli, ["judge", str(output)]).exit_code == 0
    scored = CliRunner().invoke(cli, ["score", str(output)])
    assert scored.exit_code == 0, scored.output
    for part in ("sealed", "by cause", "by form", "by version of Spark", "misses of the open part"):
        assert part in scored.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", "nothing.json"], "No such file"),
        (["record", "--only", "nonsense"], "runs.toml has no nonsense"),
        (["record", "--again"], "--again needs --only"),
    ],
)
def test_an_error_is_a_line(arguments: list[str], message: str) -> None:
    """With the exit code of a wrong use."""
    done = CliRunner().invoke(cli, arguments, env={"NO_COLOR": "1", "COLUMNS": "200"})
    assert done.exit_code == 2
    assert message in done.output
