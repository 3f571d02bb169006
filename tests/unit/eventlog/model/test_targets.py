import json

import pytest
from msgspec import Raw

from spark_app.eventlog.model.targets import Target, target_of


@pytest.mark.parametrize(
    "text",
    ["", "== Physical Plan ==\nRange (1)\n\n(1) Range\nArguments: path=/x\n\n", "(1) AppendData\nArguments: 7\n\n"],
)
def test_a_query_that_writes_nothing_known_has_no_target(text: str) -> None:
    """A path among the arguments of what only reads is none."""
    assert target_of(Raw(json.dumps(text).encode()), Raw(b"null")) is None


def test_a_plan_in_another_format_is_searched_too() -> None:
    """`spark.sql.ui.explainMode` changes the description, and not the tree."""
    plan = b'{"simpleString":"Execute InsertIntoHadoopFsRelationCommand file:/w/counts, false, x"}'
    assert target_of(Raw(b'"== Parsed Logical Plan =="'), Raw(plan)) == Target("file:/w/counts", "file:/w/counts")
