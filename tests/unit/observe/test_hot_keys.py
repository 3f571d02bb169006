from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from spark_app.eventlog.model.shuffle_keys import KeyColumn, ShuffleKey
from spark_app.observe.hot_keys import hot_key
from spark_app.observe.key_samples import NoSampleError


def key(*paths: str, column: str = "country", partitions: int = 8, kind: str = "Parquet") -> ShuffleKey:
    """What a plan says of a shuffle by a column, after a filter."""
    return ShuffleKey((KeyColumn(column, is_never_null=False),), partitions, paths, kind, ("Filter",))


def orders(folder: Path, values: Sequence[str | None], column: str = "country") -> str:
    """The location of a file with some values."""
    parquet.write_table(pa.table({column: values}), folder / "orders.parquet")
    return f"file:{folder}/orders.parquet"


def test_a_hot_key_is_named_with_its_share_of_the_input(tmp_path: Path) -> None:
    """And it is said what the query did between the sample and the shuffle."""
    where = orders(tmp_path, ["DE"] * 630 + [f"c{number}" for number in range(370)])
    found = hot_key(key(where), 2)
    assert str(found) == f"country = 'DE' has 63 % of 1,000 rows of {where}, before Filter of the query"


def test_rows_without_a_value_are_a_key(tmp_path: Path) -> None:
    """Unlike the text NULL."""
    found = hot_key(key(orders(tmp_path, [None] * 900 + ["DE"] * 100)), 2)
    assert found.values == [None]
    assert str(found).startswith("country = NULL has 90 %")


@pytest.mark.parametrize(
    ("values", "partitions"),
    [
        ([f"c{number}" for number in range(1000)], 200),
        (["a"] * 340 + ["b"] * 330 + ["c"] * 330, 200),
        (["DE"] * 120 + [f"c{number}" for number in range(880)], 8),
        (["DE"] * 90 + [f"c{number}" for number in range(10)], 8),
    ],
)
def test_nothing_is_named_where_no_value_stands_out(values: list[str | None], partitions: int, tmp_path: Path) -> None:
    """Among others alike, in partitions that hold more than it, or in few rows."""
    with pytest.raises(NoSampleError, match="no value of country has far more rows than the others"):
        hot_key(key(orders(tmp_path, values), partitions=partitions), 2)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (key("s3a://bucket/orders"), "its files are not on this machine"),
        (key("file:/data/orders", kind="CSV"), "its input is no Parquet files, but CSV"),
    ],
)
def test_other_inputs_are_not_sampled(asked: ShuffleKey, why: str) -> None:
    """Each says why."""
    with pytest.raises(NoSampleError, match=why):
        hot_key(asked, 2)


def test_values_of_secret_columns_are_masked_and_long_ones_cut(tmp_path: Path) -> None:
    """As in all of a report."""
    secret = orders(tmp_path, ["hunter2"] * 900 + ["other"] * 100, "password")
    assert hot_key(key(secret, column="password"), 2).values == ["(redacted)"]
    (shown,) = hot_key(key(orders(tmp_path, ["x" * 500] * 900 + ["y"] * 100)), 2).values
    assert shown == "x" * 59 + "…"
