"""Which value of JSON is read as which type: each type takes its own values, and no others."""

import datetime
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import SparkSession

from spark_app.engine import json_types, records
from spark_app.engine.topics import Topic
from spark_app.warehouse.schemas import RECORD

NOON: Final = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
KINDS: Final[dict[str, dict[str, Any]]] = {
    "string": {'"a"': "a", '""': ""},
    "tinyint": {"-128": -128},
    "smallint": {"32767": 32767},
    "int": {"7": 7},
    "bigint": {"9223372036854775807": 2**63 - 1},
    "decimal(5, 2)": {"1.25": Decimal("1.25"), '"1.5"': Decimal("1.50"), "-999.99": Decimal("-999.99")},
    "double": {"1": 1.0, "1.5": 1.5, "1e3": 1000.0},
    "float": {"0.5": 0.5},
    "boolean": {"true": True, "false": False},
    "date": {'"2024-02-29"': datetime.date(2024, 2, 29)},
    "timestamp": {'"2024-01-01T12:00:00Z"': NOON.replace(tzinfo=None)},
    "array<string>": {'["a", "b"]': ["a", "b"], "[]": []},
    "map<string,string>": {'{"a": "b"}': {"a": "b"}},
}
OTHERS: Final[dict[str, list[str]]] = {
    "string": ["1", "true", "[]", "{}"],
    "tinyint": ["128", '"1"', "1.5"],
    "smallint": ["32768"],
    "int": ["2147483648", '"7"', "7.5", "true"],
    "bigint": ["9223372036854775808", '"1"', "1e3"],
    "decimal(5, 2)": ["1000", "1.255", '"1e1"', "true"],
    "double": ['"1.5"', "true", "{}"],
    "float": ['"0.5"'],
    "boolean": ["1", '"true"'],
    "date": ['"2024-02-30"', '"2024-2-9"', '"2024-01-01T00:00:00Z"', "20240101"],
    "timestamp": ['"2024-01-01"', "1704110400"],
    "array<string>": ['"a"', "{}", "1"],
    "map<string,string>": ['"a"', "[]"],
}


def test_each_type_takes_its_own_values_and_no_others(spark: SparkSession) -> None:
    """What a type does not take is malformed, and says which column it is."""
    columns = {f"c{number}": kind for number, kind in enumerate(KINDS)}
    schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    topic = Topic("t", schema=f"id string, timestamp timestamp, {schema}", key="id", optional=tuple(columns))
    good = [(name, text, want) for name, kind in columns.items() for text, want in KINDS[kind].items()]
    bad = [(name, text, None) for name, kind in columns.items() for text in OTHERS[kind]]
    values = [
        f'{{"id": "1", "timestamp": "2024-01-01T12:00:00Z", "{name}": {text}}}' for name, text, _ in [*good, *bad]
    ]
    rows = [(None, text.encode(), None, "t", None, number, NOON) for number, text in enumerate(values)]
    found = records.parsed(spark.createDataFrame(rows, RECORD), topic).orderBy("offset").collect()
    for row, (name, text, want) in zip(found, good, strict=False):
        assert (row.reason, row.row[name]) == (None, want), (name, columns[name], text)
    for row, (name, text, _) in zip(found[len(good) :], bad, strict=True):
        kind = topic.schema[name].dataType
        assert row.reason == f"{name} is no {json_types.name(kind)}", (columns[name], text)


def test_a_type_that_is_not_read_from_json_is_named() -> None:
    """All the others are in the text that a message shows."""
    known = Topic("t", schema=f"id string, timestamp timestamp, {_listed()}", key="id")
    assert all(json_types.is_known(field.dataType) for field in known.schema)
    assert len(known.schema) == 2 + len(KINDS)


def _listed() -> str:
    return ", ".join(f"c{number} {kind}" for number, kind in enumerate(json_types.NAMES.split(", ")))
