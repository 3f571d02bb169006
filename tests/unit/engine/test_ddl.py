"""Schemas are read as Spark reads them, and a mistake is told with the nearest right word."""

import pytest
from pyspark.sql import SparkSession

from spark_app.engine import ddl

SCHEMAS = [
    "a int",
    "a INT, b STRING",
    "`my column` decimal(12, 2), b decimal, c decimal(5), d numeric(38,38)",
    "a bigint NOT NULL COMMENT 'it''s a key', b date COMMENT 'day, UTC'",
    "a array<string>, b map<string, array<double>>, c struct<x: int, y: struct<z: timestamp>>",
    "a struct<x int, y string COMMENT 'why'>, b timestamp_ntz, c binary, d boolean, e tinyint, f smallint, g float",
    "order_id string, date date, timestamp timestamp, comment string",
]


@pytest.mark.parametrize("text", SCHEMAS)
def test_a_schema_is_what_spark_reads(spark: SparkSession, text: str) -> None:
    """With its types, comments and nullability."""
    assert ddl.schema(text) == spark.createDataFrame([], text).schema


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("amount decimel(12, 2)", "amount: 'decimel' is no type of Spark; do you mean decimal?"),
        ("amount", "'the end' stands where the type of amount must be"),
        ("amount int,", "'the end' stands where the name of a column must be"),
        ("amount int count long", "'count' stands where 'a comma' must be"),
        ("amount decimal(50)", "amount: decimal(50, 0) must have 1 to 38 digits, and no more of them after the point"),
        ("a array<int", "a: 'the end' stands where '>' must be"),
        ("a map<string>", "a: '>' stands where ',' must be"),
        ("a int, b int, a string", "the column a is declared twice"),
        ("a int COMMENT meaning", "a: COMMENT stands without a text in quotes"),
        ("a int NOT", "a: NOT stands without NULL"),
        ("a varchr", "a: 'varchr' is no type of Spark"),
        ("", "'the end' stands where the name of a column must be"),
    ],
)
def test_a_mistake_is_told_without_spark(text: str, problem: str) -> None:
    """In one line."""
    with pytest.raises(ValueError, match=r"stands|no type|twice|digits") as raised:
        ddl.schema(text)
    assert str(raised.value) == problem
