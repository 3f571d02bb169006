"""Names of operators are found in plans as the log has them."""

import re

import pytest

from spark_app.eventlog.model.plan_names import SCAN_OF_TABLE, SHUFFLED_JOINS, parts, pattern_of_nodes


@pytest.mark.parametrize(
    ("plan", "is_found"),
    [
        (b'{"nodeName":"SortMergeJoin","simpleString":"x"}', True),
        (b'{"nodeName": "SortMergeJoin(skew=true)","simpleString":"x"}', True),
        (b'{"nodeName":"BroadcastHashJoin","simpleString":"SortMergeJoin"}', False),
        (b'{"nodeName":"Project","children":[{"nodeName":"ShuffledHashJoin"}]}', True),
    ],
)
def test_an_operator_is_found_by_what_its_name_begins_with(plan: bytes, *, is_found: bool) -> None:
    """Not by what else the plan says."""
    assert (pattern_of_nodes(SHUFFLED_JOINS).search(plan) is not None) is is_found


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("Scan parquet spark_catalog.default.sales", "default.sales"),
        ("BatchScan lake.shop.orders", "lake.shop.orders"),
        ("Scan csv ", None),
        ("BatchScan parquet file:/data/v1.2/sales", None),
    ],
)
def test_a_scan_names_its_table_without_the_catalog_of_the_session(name: str, table: str | None) -> None:
    """A scan of files has none."""
    found = re.fullmatch(SCAN_OF_TABLE, name)
    assert (found and found[1]) == table


def test_parts_of_a_list_keep_what_is_within_brackets() -> None:
    """Functions of an aggregate have arguments."""
    assert list(parts("sum(a, b), max(struct(c, [d, e])), f")) == ["sum(a, b)", "max(struct(c, [d, e]))", "f"]
