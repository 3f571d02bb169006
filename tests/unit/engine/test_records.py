import datetime
import json
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession

from app.schemas import USER_EVENT
from app.topics import PREDICTION_REQUESTS, USER_EVENTS
from spark_app.engine.records import parsed, valid
from spark_app.engine.topics import bounded, require_known
from spark_app.errors import ConfigError
from spark_app.settings import Stream
from spark_app.warehouse.schemas import RECORD

NOON: Final = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
EVENT: Final = {"event_id": "e-1", "user_id": "c-1", "event_type": "view", "timestamp": "2024-01-01T12:00:00.250Z"}


def records(spark: SparkSession, *values: bytes | None) -> DataFrame:
    """Records of a file."""
    return spark.createDataFrame([(None, value, None, "user_events", None, None, NOON) for value in values], RECORD)


def written(**changes: Any) -> bytes:
    """The value of an event."""
    return json.dumps(EVENT | changes).encode()


NO_INSTANTS: Final[list[Any]] = [
    "yesterday",
    17,
    "2024",
    "12:30",
    "2024-02-30T00:00:00Z",
    "2024-01-01T00:00:00",
    "2024-01-01T00:00Z",
    "2024-01-01T00:00:00+02:00",
    "2024-01-01T00:00:00Z\n",
    "0000-01-01T00:00:00Z",
    {},
]
PROBLEMS: Final[dict[str, list[bytes | None]]] = {
    "no value": [None],
    "not UTF-8": [b'{"event_id": "\xe9"}', b"\xff\xfe", written() + b"\xc3"],
    "not one JSON object": [
        b"", b"not json", b"null", b"5", b"[1]", b"[" + written() + b"]", written()[:-1], written()[:40],
        written() + b" more", written() + b" }", b"\xef\xbb\xbf" + written(), written(x=float("nan")),
        written(x=float("inf")), written().replace(b'"', b"'"), b"[" * 100_000, written(x=0)[:-2] + b"9" * 2_000 + b"}",
        written() + written(), written() + b"\n" + written(), b"{" * 2_000 + b"}",
    ],
    "a key twice in one object": [
        b'{"a": 1, "a": 1}', written()[:-1] + b', "properties": {"a": "1", "a": "2"}}', b'{"x": [{"a": 1, "a": 2}]}',
    ],
    "nested deeper than 100 levels": [
        b'{"event_id": ' + b"[" * 100 + b"]" * 100 + b"}",
        written(x="{")[:-1] + b', "y": ' + b'{"b": ' * 990 + b"1" + b"}" * 991,
        b"[" * 400_000 + b"]" * 400_000,
    ],
    "more than 16 MiB": [written(x="x" * 2**24)],
    "half a character: an escape without its pair": [
        written(user_id="\ud83d"), written(x="a\ude00\ud83d"), written(x="\ud83d\\\ude00"),
    ],
    "properties is no object": [written(properties=value) for value in ("none", [1], [], 5)],
    "user_id is no text": [written(user_id=value) for value in (12345, {"a": 1}, {}, [], ["c"], True)],
    "event_type is no text": [written(event_type=True)],
    "event_id is empty": [written(event_id=text) for text in ("", " ", "\t\n")],
    "timestamp is no instant in UTC": [written(timestamp=value) for value in NO_INSTANTS],
    "no event_id": [b"{}", written(event_id=None)],
    "no user_id": [written(user_id=None)],
    "no timestamp": [written(timestamp=None)],
    "timestamp later than its record": [
        written(timestamp=instant) for instant in ("2024-01-01T12:10:01Z", "2099-01-01T00:00:00Z")
    ],
}  # fmt: skip


def test_a_malformed_value_has_a_reason(spark: SparkSession) -> None:
    """The record is kept as it came."""
    values = [(reason, value) for reason, values in PROBLEMS.items() for value in values]
    found = parsed(records(spark, *(value for _, value in values)), USER_EVENTS)
    rows = [(row.reason, None if row.value is None else bytes(row.value)) for row in found.collect()]
    assert rows == values


@pytest.mark.parametrize(
    "more",
    [{}, {"properties": None}, {"properties": {"text": "} {" * 90}}, {"unknown": [1]}, {"x": "\\ud83d \0 \U0001f600"}],
)
def test_a_well_formed_value_has_none(spark: SparkSession, more: dict[str, Any]) -> None:
    """Optional and unknown fields may be there or not; braces in a text do not count, nor escaped backslashes."""
    found = parsed(records(spark, written(**more) + b" \r"), USER_EVENTS)
    assert [(row.reason, row.row.event_id) for row in found.collect()] == [(None, "e-1")]


def test_a_value_is_an_event_with_milliseconds(spark: SparkSession) -> None:
    """In UTC; with or without a fraction of a second."""
    values = [written(properties={"amount": "1.50"}), written(timestamp="2024-01-01T12:00:00Z")]
    first, second = valid(records(spark, *values, b"broken"), USER_EVENTS).collect()
    assert (first.event_id, first.properties) == ("e-1", {"amount": "1.50"})
    assert first.timestamp.astimezone(datetime.UTC) == NOON.replace(microsecond=250_000)
    assert second.timestamp.astimezone(datetime.UTC) == NOON
    assert first.__fields__ == USER_EVENT.names


def test_an_event_may_be_as_much_later_than_its_record_as_its_topic_allows(spark: SparkSession) -> None:
    """By the timestamp of the record, and not by a clock: read again in a year, it is judged alike."""
    values = [written(timestamp=instant) for instant in ("1970-01-01T00:00:00Z", "2024-01-01T12:10:00Z")]
    assert valid(records(spark, *values), USER_EVENTS).count() == 2
    later = records(spark, written(timestamp="2024-01-01T13:00:00Z"))
    bounds: list[tuple[str | None, dict[str, str | None], int]] = [
        ("1 hour", {}, 1), (None, {"user_events": "59 minutes"}, 0), (None, {}, 1),
        ("1 second", {"user_events": None}, 1),
    ]  # fmt: skip
    for of_all, of_topics, kept in bounds:
        stream = Stream(landing=None, event_time_after_max=of_all, event_time_after_max_of=of_topics)
        assert valid(later, bounded(USER_EVENTS, stream)).count() == kept
    wrong = Stream(landing=None, event_time_after_max=None, event_time_after_max_of={"user_event": None})
    with pytest.raises(ConfigError, match=r"event_time_after_max_of: there is no topic user_event; allowed are user_"):
        require_known(wrong, [USER_EVENTS])


def test_fields_that_the_schema_does_not_know_are_kept_as_text(spark: SparkSession) -> None:
    """And those records are counted; the schema's own fields are not among them."""
    deep = json.loads("[" * 99 + "]" * 99)
    values = [written(), written(x=1.5, y={"z": [1]}, w=None), written(deep=deep), b'{"x": 1}']
    observation = Observation()
    rows = valid(records(spark, *values), USER_EVENTS, keep=["extra"], counted_as=observation)
    kept = [row.extra for row in rows.collect()]
    assert kept == [None, {"x": "1.5", "y": '{"z":[1]}', "w": None}, {"deep": json.dumps(deep)}]
    assert observation.get["unknown_fields"] == 2


def test_numbers_keep_their_digits_or_are_refused(spark: SparkSession) -> None:
    """An amount may be a number or its digits as text; none is rounded or cut to the type of its column."""
    asked = {"request_id": "r", "customer_id": "c", "created_at": "2024-01-01T12:00:00Z"}
    amounts = {"1.00": "1.00", 1: "1.00", 1.5: "1.50", "1.500": "1.50", "9999999999.99": "9999999999.99"}
    others = ["1.00\n", "1e-999999999", "1.005", 1.005, "1e2", 1e30, "10000000000.00", True, {"a": 1}, "NaN", ""]
    quantities = [1.0, "1", 3_000_000_000, 10**30]
    values = [asked | {"amount": amount} for amount in (*amounts, *others)]
    values += [asked | {"amount": "1.00", "quantity": quantity} for quantity in quantities]
    found = parsed(records(spark, *[json.dumps(value).encode() for value in values]), PREDICTION_REQUESTS).collect()
    assert [f"{row.row.amount}" for row in found if row.reason is None] == list(amounts.values())
    reasons = [row.reason for row in found if row.reason is not None]
    assert reasons == ["amount is no decimal(12,2)"] * len(others) + ["quantity is no integer"] * len(quantities)
