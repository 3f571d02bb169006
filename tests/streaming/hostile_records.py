"""Records as no producer should send them, and some that only look so: generated from a seed."""

import datetime
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.streaming.record_judge import EPOCH, FIELDS, Judged, MalformedError, judged

ODD_TEXTS: Final = (
    "", " ", "\t", "\u00a0", "\0", "a\0b", "\x7f", "ünïcödé", "\u202e abc", "💥" * 3, "\ufeff", "x" * 3_000, "null",
    "NaN",
    "12:30", "1e2", "١٢٣", "0x10", "${jndi:ldap://x}", "'; DROP TABLE events; --", "<script>", "\\", '"', "} {" * 200,
    "[" * 200, "../../etc", "a.b", "$[0]", "`", "%s%n", "\u2028", "e\u0301", "\ud83d", "\ude00", "a\ude00\ud83d",
)  # fmt: skip
ODD_NUMBERS: Final = (
    0, -1, 17, 2**31, -(2**31), 2**53 + 1, 2**63, 2**64, 10**37, 10**40, 10**999, 10**1_001, 1.5, -0.0, 5e-324, 1e308,
    float("nan"), float("inf"), -float("inf"),
)  # fmt: skip
ODD_AMOUNTS: Final[tuple[Any, ...]] = (
    "NaN", "", "abc", "Infinity", "١٢", "1e400", "1e999999999", "1e-999999999", "99999999999999", "--1", "1,50", None,
    {},
    [], True, "5000.00\n",
)  # fmt: skip
ODD_INSTANTS: Final = (
    "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "1582-10-10T00:00:00Z", "1969-12-31T23:59:59.999999Z",
    "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.001Z", "2000-02-29T12:00:00Z", "2023-02-29T12:00:00Z",
    "2016-12-31T23:59:60Z", "2024-01-01T24:00:00Z", "2024-13-01T00:00:00Z", "2024-01-01t00:00:00z", "2024-01-01",
    "2024-01-01T00:00:00", "2024-01-01T00:00:00+00:00", "2024-01-01T00:00:00.1234567Z", "2024-01-01T00:00:00.Z",
    "２０２４-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "10000-01-01T00:00:00Z",
    "2024-01-01T00:00:00Z\n", "+294247-01-10T04:00:54.775807Z", "-290308-12-21T19:59:05.224193Z", "now", "today",
    "1704067200",
)  # fmt: skip
ODD_TIMES_MS: Final = (0, 1, 951_825_600_000)
"""Timestamps of records: 1970, and a leap day of 2000; brokers refuse those of the future."""
GARBAGE: Final[tuple[bytes | None, ...]] = (
    None, b"", b" ", b"\n", b"null", b"true", b"5", b'"text"', b"[]", b"{}", b"[{}]", b"{", b"}", b"{]", b'{"a"',
    b'{"a":',
    b"\x00", b"\xff" * 40, b"\xef\xbb\xbf", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x1f\x8b\x08\x00",
    b"//",
    b"<xml/>", b"a,b,c", b"{'a': 1}", b"{a: 1}", b'{"a": 1,}', b'{"a": 01}', b'{"a": .5}', b'{"a": 1.}', b'{"a": +1}',
    b'{"a": 0x1}', b'{"a": 1e}', b'{"a": tru}', b'{"a": "\t"}', b'{"a": "\\x"}', b'{"a": "\\u12"}', b"{/**/}",
    b'"' * 1_001,
    b"\\" * 1_001, b"\\u" * 500, b"9" * 5_000, b'{"a":' * 3_000, b"{" * 3_000 + b"}" * 3_000,
)  # fmt: skip
HEAVY: Final = (
    b"x" * 900_000, b"[" * 900_000, b"[" * 400_000 + b"]" * 400_000, b"{}" * 400_000,
    b'{"a": "' + b"{" * 900_000 + b'"}',
    b'{"a": [' + b"[1], " * 100_000 + b"1]}",
)  # fmt: skip
"""Values that take long; each comes once."""


@dataclass(frozen=True)
class Hostile:
    """One record, as it is sent.

    Attributes:
        topic: Its topic.
        key: Its key.
        value: Its value; None for a tombstone.
        headers: Its headers; a value may be None.
        timestamp_ms: Its timestamp.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int

    def judged(self) -> Judged | None:
        """What is in its value; None if it is malformed."""
        try:
            return judged(self.topic, self.value, self.timestamp_ms * 1000)
        except MalformedError:
            return None

    def __str__(self) -> str:
        """A record as a line, with the begin of its value."""
        about = self.topic, self.timestamp_ms, self.key, self.headers, f"{len(self.value or b'')} bytes"
        return f"{about} {(self.value or b'')[:400]!r}"


def records(topic: str, number: int, seed: int, now_ms: int) -> list[Hostile]:
    """Records of a topic, each from another instant of the hours before now; some come twice.

    Those of one id are equal: of others, a query may keep any.

    Args:
        topic: The topic.
        number: How many.
        seed: Equal seeds give equal records.
        now_ms: When they are sent, in milliseconds since 1970.
    """
    rng = random.Random(f"{topic} {seed}")
    made: list[Hostile] = []
    ids = set[str]()
    while len(made) < number:
        if made and rng.random() < 0.05:
            made.append(made[-rng.randint(1, min(20, len(made)))])
            continue
        record = _record(topic, len(made), rng, now_ms)
        found = record.judged()
        if found is None or found.fields[next(iter(FIELDS[topic]))] not in ids:
            made.append(record)
            ids |= {found.fields[next(iter(FIELDS[topic]))]} if found else set()
    return made


def _record(topic: str, place: int, rng: random.Random, now_ms: int) -> Hostile:
    value = _value(topic, place, rng, now_ms)
    key = rng.choice((b"", b"k", b"\xff\x00", b"k" * 90))
    headers = rng.choice(((), (("a", b""),), (("", b""), ("a", b"\xff")), (("file", b"x"), ("traceparent", b"no"))))
    return Hostile(topic, key, value, headers, now_ms if rng.random() < 0.95 else rng.choice(ODD_TIMES_MS))


def _value(topic: str, place: int, rng: random.Random, now_ms: int) -> bytes | None:
    if place % 100 == 50 and place // 100 < len(HEAVY):
        return HEAVY[place // 100]
    if rng.random() < 0.1:
        return rng.choice(GARBAGE)
    content = _content(topic, place, rng, now_ms)
    for change in (_with_odd_field, _with_other_fields, _with_odd_instant, _with_properties):
        if rng.random() < 0.2:
            change(topic, content, place, rng)
    text = json.dumps(content, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, None, 1)))
    value = text.encode("utf-8", "surrogatepass")
    return rng.choice(DAMAGES)(value, rng) if rng.random() < 0.25 else value


def _content(topic: str, place: int, rng: random.Random, now_ms: int) -> dict[str, Any]:
    """A well-formed value; clicks are on impressions, some of which exist."""
    instant = written(now_ms - 3 * 3_600_000 + place * 1_301)
    user = f"c-{rng.randrange(50):07}"
    if topic == "user_events":
        properties = {
            "product_id": rng.choice("pqrs"),
            "amount": f"{rng.randrange(1, 400_000) / 100:.2f}",
            "currency": "EUR",
        }
        kind = rng.choice(("view", "add_to_cart", "remove_from_cart", "purchase", "purchase"))
        return {
            "event_id": f"e-{place}",
            "user_id": user,
            "event_type": kind,
            "timestamp": instant,
            "properties": properties,
        }
    if topic == "impressions":
        return {"impression_id": f"i-{place}", "ad_id": "a", "user_id": user, "timestamp": instant}
    if topic == "clicks":
        return {
            "click_id": f"k-{place}",
            "impression_id": f"i-{max(0, place - rng.randrange(5))}",
            "timestamp": instant,
        }
    amount: Any = rng.choice((1, 2.5, "3.00", "3.00\n", "0.01", "9999999999.99", "1.500"))
    asked = {"request_id": f"r-{place}", "customer_id": user, "amount": amount, "created_at": instant, "quantity": 2}
    return asked | {"category": rng.choice((None, "books")), "country": "DE"}


def _with_odd_field(topic: str, content: dict[str, Any], place: int, rng: random.Random) -> None:
    name = rng.choice(list(FIELDS[topic]))
    if name.endswith("_id") and rng.random() < 0.5:
        content[name] = f"{content.get(name)} {rng.choice(ODD_TEXTS)}"
    elif rng.random() < 0.2:
        content.pop(name, None)
    elif name in ("timestamp", "created_at", "event_id", "impression_id", "click_id", "request_id", "user_id"):
        content[name] = rng.choice((None, 5, True, {}, [], "", " ", "\t", "yesterday", 1e300, {"a": 1}, ["x"]))
    else:
        content[name] = _odd(rng)


def _with_other_fields(topic: str, content: dict[str, Any], place: int, rng: random.Random) -> None:
    for name in rng.sample(("x", "", "a.b", "EVENT_ID", "extra", "💥", "$", "x" * 300, "y" * 50_001, "\ud800"), 2):
        if (len(name) < 1_000 and name != "\ud800") or rng.random() < 0.1:
            content[name] = _odd(rng)


def _with_odd_instant(topic: str, content: dict[str, Any], place: int, rng: random.Random) -> None:
    name = "created_at" if topic == "prediction_requests" else "timestamp"
    content[name] = rng.choice(ODD_INSTANTS)
    if "user_id" in content:
        content["user_id"] = f"c-of-{place}"  # whose events are not of one instant


def _with_properties(topic: str, content: dict[str, Any], place: int, rng: random.Random) -> None:
    if topic != "user_events" or not isinstance(content.get("properties"), dict):
        return
    content["properties"] |= {"amount": rng.choice(ODD_AMOUNTS)} if rng.random() < 0.5 else {"odd": _odd(rng), "": None}
    if rng.random() < 0.2:
        content["properties"] = rng.choice((None, {}, {"currency": None, "amount": "5000.00"}, {"product_id": None}))


def _odd(rng: random.Random, depth: int = 0) -> Any:
    kinds: list[Callable[[], Any]] = [
        lambda: rng.choice(ODD_TEXTS),
        lambda: rng.choice(ODD_NUMBERS),
        lambda: rng.choice((None, True, False, [], {})),
        lambda: json.loads("[" * 90 + "]" * 90),
    ]
    if depth < 3:
        kinds += [
            lambda: [_odd(rng, depth + 1) for _ in range(rng.randrange(4))],
            lambda: {rng.choice(("a", "b", "ü", "")): _odd(rng, depth + 1) for _ in range(rng.randrange(4))},
        ]
    return rng.choice(kinds)()


def written(ms: int) -> str:
    """An instant, in milliseconds since 1970, as producers write it."""
    instant = EPOCH + datetime.timedelta(milliseconds=ms)
    return f"{instant:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03}Z"


def _flipped(value: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(value))
    return value[:place] + bytes([value[place] ^ 1 << rng.randrange(8)]) + value[place + 1 :]


def _inserted(value: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(value))
    odd = (b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\x00", b"\xc3", b" ", b"\xed\xa0\xbd", b"\\ud83d", b"0")
    return value[:place] + rng.choice(odd) + value[place:]


def _more(value: bytes, rng: random.Random) -> bytes:
    pairs = (
        b'"a": "1", "a": "2"', b'"a": 1, "\\u0061": 2', b'"b": {"a": 1, "a": 1}', b'"b": [{"a": {}, "a": {}}]',
        b'"properties": {"a": "1", "a": "2"}', b'"event_id": "z"', b'"x": ' + b"[" * 99 + b"]" * 99,
        b'"x": ' + b"[" * 100 + b"]" * 100, b'"x": ' + b'{"y":' * 4_000 + b"1" + b"}" * 4_000, b'"x": "\\ud83d\\ude00"',
        b'"x": "\\ud83d\\\\\\ude00"', b'"x": "\\\\ud83d"', b'"x": "\\\\\\ud83d"', b'"x": "\\uDE00\\uD83D"',
        b'"x": 1e400',
        b'"x": 1E-400', b'"x": -0', b'"x": 1e+2', b'"x": 0.' + b"1" * 990, b'"x": 0.' + b"1" * 1_001, b'"x": NaN',
        b'"x": -Infinity', b'"x": "' + b"z" * 30_000 + b'"', b'"event\\u005fid2": "z"', b'"x": "\\/\\b\\f\\n"',
    )  # fmt: skip
    return value.rstrip()[:-1] + b", " + rng.choice(pairs) + b"}"


def _cut(value: bytes, rng: random.Random) -> bytes:
    return value[: rng.randrange(len(value))]


def _led(value: bytes, rng: random.Random) -> bytes:
    return rng.choice((b"\xef\xbb\xbf", b" \r\n\t", b"\x0b", b"\xc2\xa0", b"\x00", b")]}',\n")) + value


def _followed(value: bytes, rng: random.Random) -> bytes:
    return value + rng.choice((b" \r\n\t", b"\x0b", b"\x00", b"}", b",", b" null", b"\n{}", b"//", b"]", value))


def _recoded(value: bytes, rng: random.Random) -> bytes:
    text = value.decode("utf-8", "replace")
    encodings = ("utf-16", "utf-16-le", "utf-32", "utf-7", "latin-1")
    return rng.choice((*(text.encode(each, "replace") for each in encodings), json.dumps(text).encode()))


def _rewritten(value: bytes, rng: random.Random) -> bytes:
    return rng.choice((b"[" + value + b"]", value.replace(b'"', b"'"), value.replace(b":", b"="), value[1:-1]))


DAMAGES: Final = (
    _flipped, _flipped, _inserted, _inserted, _more, _more, _more, _cut, _led, _followed, _recoded, _rewritten,
)  # fmt: skip
