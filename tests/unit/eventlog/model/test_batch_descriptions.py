"""What Spark calls the work of a micro-batch says which one it is."""

from typing import Final

import pytest

from spark_app.eventlog.model.batch_descriptions import BatchDescription, parse

IDS: Final = "id = query-1\nrunId = run-1\nbatch = "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"orders\n{IDS}7", BatchDescription("orders", "query-1", "7")),
        (f"\n{IDS}7", BatchDescription("", "query-1", "7")),
        (f"{IDS}init", BatchDescription("", "query-1", "init")),
        (f"two\nlines\n{IDS}7", BatchDescription("two\nlines", "query-1", "7")),
        (f"orders\n{IDS}7\nand more", None),
        ("load batch = 7", None),
        (None, None),
    ],
)
def test_a_description_of_a_batch_has_the_name_of_its_query_and_its_number(
    text: str | None, expected: BatchDescription | None
) -> None:
    """What a program calls its own work is none, also where it looks alike."""
    assert parse(text) == expected
