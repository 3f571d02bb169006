"""Records of the shop's topics: their JSON values, and the values that are none."""

import datetime
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

USER_EVENTS: Final = "user_events"
IMPRESSIONS: Final = "impressions"
CLICKS: Final = "clicks"
PREDICTION_REQUESTS: Final = "prediction_requests"
KEY_FIELD: Final = {
    USER_EVENTS: "event_id",
    IMPRESSIONS: "impression_id",
    CLICKS: "click_id",
    PREDICTION_REQUESTS: "request_id",
}
"""The field that identifies a record of each topic; the first of its value."""
TOPICS: Final = tuple(KEY_FIELD)

Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """One record as a producer sends it.

    Attributes:
        topic: The topic.
        key: The id of the user, or of the impression: records of one key stay in order.
        value: A JSON object in UTF-8, unless the record is malformed. It has no line feed.
        traceparent: The W3C trace context of what caused the record.
        fault: What was planted in it, by its name in `faults.STREAM_SHARES`.
    """

    topic: str
    key: bytes
    value: bytes
    traceparent: str
    fault: str | None = None


encoded: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode
"""The value as compact JSON, its fields in their order."""


def instant_field(value: Value) -> str:
    """The field of a value that says when it happened."""
    return "timestamp" if "timestamp" in value else "created_at"


def timestamp(ms: int) -> str:
    """An instant, in milliseconds since 1970, like 2024-01-01T08:15:30.123Z."""
    seconds, rest = divmod(ms, 1000)
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%dT%H:%M:%S}.{rest:03}Z"


def traceparent(trace: str, span: str) -> str:
    """A sampled W3C trace context whose ids are derived from two names."""
    ids = [hashlib.blake2b(name.encode(), digest_size=size).hexdigest() for name, size in ((trace, 16), (span, 8))]
    return f"00-{ids[0]}-{ids[1]}-01"


def not_json(value: Value, variant: int) -> bytes:
    """A bare word, XML, or a JSON array."""
    identifier = next(iter(value.values()))
    return (b"oops", f"<event id='{identifier}'/>".encode(), encoded([identifier]))[variant % 3]


def wrong_type(value: Value, variant: int) -> bytes:
    """A JSON object with an instant that is none, or with text in place of an object."""
    is_object = "properties" in value and variant % 2
    return encoded(value | ({"properties": "none"} if is_object else {instant_field(value): "yesterday"}))


def no_event_id(value: Value, variant: int) -> bytes:
    """A JSON object whose identifying field is missing, or null."""
    first, *others = value
    return encoded(value | {first: None}) if variant % 2 else encoded({key: value[key] for key in others})


def cut(value: Value, variant: int) -> bytes:
    """A JSON object that ends early: in its middle, or without the last brace."""
    whole = encoded(value)
    return whole[:-1] if variant % 2 else whole[: len(whole) // 2]


def not_utf8(value: Value, variant: int) -> bytes:
    """A JSON object with a text in Latin-1: the byte 0xE9 is no character of UTF-8."""
    return encoded(value | {"note": f"{variant} caf#s"}).replace(b"#", b"\xe9")


MALFORMED: Final[Mapping[str, Callable[[Value, int], bytes]]] = {
    each.__name__: each for each in (not_json, wrong_type, no_event_id, cut, not_utf8)
}
"""How a record of each malformed kind is written, from its value and its number among its kind."""
