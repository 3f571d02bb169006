"""What the reference says of a record, in plain Python: well-formed or not, and the values in it.

It shares nothing with the parser of the queries: neither a library nor a rule.
"""

import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND: Final = datetime.timedelta(microseconds=1)
BOUND_US: Final = 600_000_000
MAX_DEPTH: Final = 100
MAX_BYTES: Final = 16 * 2**20
LONGEST_NUMBER: Final = 1_000
LONGEST_NAME: Final = 50_000
"""Characters of a number and of a key that Jackson reads, with which Spark reads JSON."""
FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "user_events": {
        "event_id": "text!",
        "user_id": "text!",
        "event_type": "text!",
        "timestamp": "instant!",
        "properties": "map",
    },
    "impressions": {"impression_id": "text!", "ad_id": "text!", "user_id": "text!", "timestamp": "instant!"},
    "clicks": {"click_id": "text!", "impression_id": "text!", "timestamp": "instant!"},
    "prediction_requests": {
        "request_id": "text!",
        "customer_id": "text!",
        "amount": "money!",
        "created_at": "instant!",
        "quantity": "integer",
        **dict.fromkeys(
            (
                "transaction_id", "category", "payment_method", "channel", "country", "customer_segment",
                "customer_country",
            ),
            "text",
        ),
    },
}  # fmt: skip
"""The fields of each topic and their types; `!` stands for required."""


class MalformedError(Exception):
    """A record is malformed; the message says why."""


class Number(str):
    """The digits of a number of JSON."""

    __slots__ = ()


@dataclass(frozen=True)
class Judged:
    """A well-formed value.

    Attributes:
        fields: The fields of its topic: text, digits, or a map; instants in microseconds since 1970.
        others: The fields that its topic does not know.
    """

    fields: Mapping[str, Any]
    others: Mapping[str, Any]


def judged(topic: str, value: bytes | None, sent_us: int) -> Judged:
    """The value of a record.

    Args:
        topic: Its topic.
        value: Its bytes.
        sent_us: Its timestamp, in microseconds since 1970.

    Raises:
        MalformedError: It has none.
    """
    found = _json_object(value)
    fields = {name: _field(name, kind, found.get(name)) for name, kind in FIELDS[topic].items()}
    instant = fields["created_at" if topic == "prediction_requests" else "timestamp"]
    _check(instant <= sent_us + BOUND_US, "later than its record")
    if topic == "prediction_requests":
        _check(Decimal(fields["amount"]) > 0, "not positive")
        _check(instant >= 0, "before 1970")
        _check(instant >= _years_before(sent_us, 10), "too old")
    return Judged(fields, {name: value for name, value in found.items() if name not in fields})


def _json_object(value: bytes | None) -> dict[str, Any]:
    _check(value is not None and len(value) <= MAX_BYTES, "no value, or too long")
    assert value is not None
    try:
        found = json.loads(
            value.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_number,
            parse_float=_number,
            parse_constant=_refused,
        )
    except (ValueError, RecursionError) as error:
        raise MalformedError("no JSON") from error
    _check(isinstance(found, dict), "no object")
    _check(_depth(found) <= MAX_DEPTH, "too deep")
    return dict(found)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    _check(len(dict(pairs)) == len(pairs), "a key twice")
    _check(all(len(name) <= LONGEST_NAME for name, _ in pairs), "a long key")
    for text in [text for pair in pairs for text in pair]:
        _check_text(text)
    return dict(pairs)


def _check_text(value: Any) -> None:
    """Texts of lists are those of an object, too, in the end."""
    if isinstance(value, list):
        for each in value:
            _check_text(each)
    elif isinstance(value, str):
        _check(not re.search("[\ud800-\udfff]", value), "half a character")


def _number(digits: str) -> Number:
    _check(len(digits) <= LONGEST_NUMBER, "a long number")
    return Number(digits)


def _refused(text: str) -> None:
    raise MalformedError(text)


def _depth(value: Any) -> int:
    deepest, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        deepest += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return deepest


def _field(name: str, kind: str, value: Any) -> Any:
    if value is None:
        _check(not kind.endswith("!"), f"no {name}")
        return None
    read: Callable[[Any], Any] = {
        "text": _text,
        "instant": _instant,
        "money": _money,
        "integer": _integer,
        "map": _map,
    }[kind.rstrip("!")]
    found = read(value)
    _check(not (kind == "text!" and not re.search(r"[^ \t\n\r\f\v]", found)), f"{name} is blank")
    return found


def _text(value: Any) -> str:
    _check(isinstance(value, str) and not isinstance(value, Number), "no text")
    return str(value)


def _instant(value: Any) -> int:
    text = _text(value)
    _check(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z", text), "no instant")
    whole, _, fraction = text[:-1].partition(".")
    try:
        instant = datetime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=datetime.UTC)
    except ValueError as error:
        raise MalformedError("no such instant") from error
    return (instant - EPOCH) // MICROSECOND + int(fraction.ljust(6, "0"))


def _money(value: Any) -> str:
    _check(isinstance(value, str), "no amount")
    _check(re.fullmatch(r"-?0*[0-9]{1,10}(\.[0-9]{1,2}0*)?", value), "no amount of its column")
    _check(not isinstance(value, Number) or len(value.lstrip("-").replace(".", "")) <= 38, "too many digits")
    return str(value)


def _integer(value: Any) -> int:
    _check(isinstance(value, Number) and re.fullmatch(r"-?[0-9]+", value), "no integer")
    _check(-(2**31) <= int(value) < 2**31, "no room in its column")
    return int(value)


def _map(value: Any) -> dict[str, Any]:
    _check(isinstance(value, dict), "no object")
    return dict(value)


def _years_before(us: int, years: int) -> int:
    """The same day and time of an earlier year; a day that it does not have is the one before."""
    then = EPOCH + us * MICROSECOND
    day = 28 if (then.month, then.day) == (2, 29) and (then.year - years) % 4 else then.day
    return (then.replace(year=then.year - years, day=day) - EPOCH) // MICROSECOND


def _check(is_right: object, problem: str) -> None:
    if not is_right:
        raise MalformedError(problem)
