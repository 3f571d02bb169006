"""The live side of the shop: an endless, seeded stream of records, with planted faults.

The n-th record is sent n / rate seconds after the start. Time passes only by records, so that the same plan gives the
same bytes however fast they are sent. Event times are those of sending, but for records that come late.

What a query finds in the stream must not depend on how the records fall into micro-batches. So what comes late comes
far inside the watermark or far outside: the constants leave room on both sides.
"""

import datetime
import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

import msgspec

from app.demo import DEMO_SEED, event_records, visits
from app.demo.event_records import (
    CLICKS,
    IMPRESSIONS,
    KEY_FIELD,
    MALFORMED,
    PREDICTION_REQUESTS,
    PREFIX,
    USER_EVENTS,
    Record,
    Value,
)
from app.demo.faults import STREAM_SHARES
from app.demo.visits import between

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS

OUT_OF_ORDER_MS: Final = (1 * SECOND_MS, 10 * SECOND_MS)
LATE_MS: Final = (30 * SECOND_MS, 2 * MINUTE_MS)
"""How much later than others a late record comes: a watermark of at least twice the most keeps it in any batch."""
VERY_LATE_MS: Final = (24 * HOUR_MS, 36 * HOUR_MS)
"""How old a very late event is: a watermark of less than half the least drops it in any batch."""
SETTLED_MS: Final = 10 * MINUTE_MS
"""Very late events come only then: Spark drops late rows by the watermark before the last batch, so that the first two
batches drop nothing; together they must not be longer than this."""
NEAR_MS: Final = (1, 1 * SECOND_MS)
FAR_MS: Final = (30 * SECOND_MS, 2 * MINUTE_MS)
"""How much later a record is sent again; as far as late records come."""

CLICK_RATIO: Final = 0.2
CLICK_MS: Final = (1 * SECOND_MS, 2 * MINUTE_MS)
LATE_CLICK_MS: Final = (20 * MINUTE_MS, 30 * MINUTE_MS)
"""How long after its impression a click comes: in time or far too late, for any bound from 3 to 19 minutes."""

IMPRESSION_RATIO: Final = 0.6
ADS: Final = 40
HOT_USER: Final = 1
COHORTS: Final = 10
COHORT_MS: Final = 5 * MINUTE_MS
"""Customers shop in turns, a tenth of them at a time: each is away for 45 minutes, so that sessions end."""
UNKNOWN_FROM: Final = 9_900_001
UNKNOWN_USERS: Final = 90_000

SENTINEL: Final = "sentinel"
"""The prefix of the ids of records that only move the watermark."""
SENTINEL_USER: Final = "c-0000000"
"""Their user, whom no customers file has; to queries they are records like any other."""
SENTINEL_AHEAD_MS: Final = 24 * HOUR_MS


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What determines every record of a stream.

    Attributes:
        start: When the first record is sent, to the millisecond; ids contain it.
        seed: What users do, and what is planted where.
        rate: Records per second.
        customers: The users are the customers 1 to this.
        currency: The currency of all amounts.
        shares: Parts of 10,000 of each kind of fault; a kind that is missing is not planted.
    """

    start: datetime.datetime
    seed: int = DEMO_SEED
    rate: float = 20.0
    customers: int = 500
    currency: str = "EUR"
    shares: dict[str, int] = msgspec.field(default_factory=lambda: dict(STREAM_SHARES))

    @property
    def name(self) -> str:
        """The start and the seed: streams of other starts or seeds share no id."""
        return f"{self.start.astimezone(datetime.UTC):%Y%m%dT%H%M%S}{self.start.microsecond // 1000:03}-{self.seed}"

    def instant_ms(self, number: int) -> int:
        """When a record is sent, in milliseconds since 1970."""
        return round(self.start.timestamp() * SECOND_MS) + int(number * SECOND_MS / self.rate)


def records(plan: Plan) -> Iterator[Record]:
    """The records of a plan in the order of sending, without an end."""
    stream = _Stream(plan)
    return (stream.record(number) for number in itertools.count())


def sentinels(plan: Plan, number: int) -> Sequence[Record]:
    """One record per topic with windows, a day after the record of that number, which closes all windows before it.

    Spark drops what is older than the watermark, and reads partitions and files side by side. So sentinels belong
    after a drain: queries must have read everything else before.
    """
    at = event_records.timestamp(plan.instant_ms(number) + SENTINEL_AHEAD_MS)
    identifier = f"{SENTINEL}-{plan.name}"
    values: Mapping[str, Value] = {
        USER_EVENTS: {"user_id": SENTINEL_USER, "event_type": "view", "timestamp": at, "properties": {}},
        IMPRESSIONS: {"ad_id": "a-000", "user_id": SENTINEL_USER, "timestamp": at},
        CLICKS: {"impression_id": identifier, "timestamp": at},
    }
    return [
        replace(_record(topic, identifier, SENTINEL_USER, value, trace=identifier), fault=SENTINEL)
        for topic, value in values.items()
    ]


Made = Callable[[int], Record]
"""Gives a record when it is due, from the instant in milliseconds."""


class _Stream:
    """The state between two records: who is in the shop, and what is still to be sent."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._chance = Random(f"{plan.seed}/shop")
        self._placing = Random(f"{plan.seed}/faults")
        self._bought = Random(f"{plan.seed}/purchases")
        self._due: list[tuple[int, int, Made]] = []
        self._ids = itertools.count()
        self._planted: Counter[str] = Counter()
        self._last_ms: dict[str, int] = {}
        self._start_ms = plan.instant_ms(0)

    def record(self, number: int) -> Record:
        """The next record, which has that number."""
        at = self._plan.instant_ms(number)
        while True:
            record = self._next(number, at)
            if record.fault is not None:
                return record
            held = self._take(number, "late", "out_of_order")
            if held is None:
                self._repeat(number, at, record)
                return record
            delay = between(self._placing, *(LATE_MS if held == "late" else OUT_OF_ORDER_MS))
            self._send_later(at + delay, _sending(replace(record, fault=held)))

    def _next(self, number: int, at: int) -> Record:
        if self._due and self._due[0][0] <= at:
            return heapq.heappop(self._due)[2](at)
        extra = self._extra(number, at)
        if extra is not None:
            return extra
        return self._impression(number, at) if self._chance.random() < IMPRESSION_RATIO else self._visit(at)

    def _send_later(self, due: int, made: Made) -> None:
        heapq.heappush(self._due, (due, next(self._ids), made))

    def _take(self, number: int, *kinds: str) -> str | None:
        """The first kind of which fewer are planted than its share of the records until this one."""
        for kind in kinds:
            if self._planted[kind] < (number + 1) * self._plan.shares.get(kind, 0) // 10_000:
                self._planted[kind] += 1
                return kind
        return None

    def _repeat(self, number: int, at: int, record: Record) -> None:
        kind = self._take(number, "duplicate_near", "duplicate_far")
        if kind is not None:
            delay = between(self._placing, *(NEAR_MS if kind == "duplicate_near" else FAR_MS))
            self._send_later(at + delay, _sending(replace(record, fault=kind)))

    def _extra(self, number: int, at: int) -> Record | None:
        """A record that no visit or impression causes, if one is due."""
        match self._take(
            number, "hot_user", "unknown_user", "very_late", "unknown_click", "negative_amount", *MALFORMED
        ):
            case None:
                return None
            case "hot_user" as kind:
                return replace(self._view(at, HOT_USER), fault=kind)
            case "unknown_user" as kind:
                return replace(self._view(at, UNKNOWN_FROM + between(self._placing, 0, UNKNOWN_USERS - 1)), fault=kind)
            case "very_late" as kind:
                return self._very_late(at, kind)
            case "unknown_click" as kind:
                return replace(self._click(f"i-{self._plan.name}-none")(at), fault=kind)
            case "negative_amount" as kind:
                return replace(self._sample_request(at, amount="-1.00"), fault=kind)
            case kind:
                return self._malformed(at, kind)

    def _very_late(self, at: int, kind: str) -> Record | None:
        """A view of yesterday: views alone, so that queries without a watermark have the same answer."""
        if at < self._start_ms + SETTLED_MS:
            return None
        user = between(self._placing, HOT_USER + 1, self._plan.customers)
        return replace(self._view(at - between(self._placing, *VERY_LATE_MS), user), fault=kind)

    def _malformed(self, at: int, kind: str) -> Record:
        """A record of each topic in turns, but mostly of events."""
        variant = self._planted[kind] - 1
        topics = (USER_EVENTS, USER_EVENTS, IMPRESSIONS, CLICKS, PREDICTION_REQUESTS)
        topic = topics[variant % len(topics)]
        samples: Mapping[str, Callable[[], Record]] = {
            USER_EVENTS: lambda: self._view(at, between(self._placing, HOT_USER + 1, self._plan.customers)),
            IMPRESSIONS: lambda: self._shown(at)[1],
            CLICKS: lambda: self._click(f"i-{self._plan.name}-none")(at),
            PREDICTION_REQUESTS: lambda: self._sample_request(at, amount="1.00"),
        }
        record = samples[topic]()
        value = MALFORMED[kind](msgspec.json.decode(record.value), variant // 2)
        return replace(record, value=value, fault=kind)

    def _view(self, ms: int, user: int) -> Record:
        product = f"p-{between(self._placing, 1, visits.PRODUCTS):05}"
        number = next(self._ids)
        return self._event(ms, f"c-{user:07}", "view", {"product_id": product}, self._trace(number))

    def _visit(self, at: int) -> Record:
        """Lets a customer in, whose first step this is."""
        cohort = (at - self._start_ms) // COHORT_MS % COHORTS
        first = HOT_USER + 1 + cohort
        members = range(first, self._plan.customers + 1, COHORTS)
        user = members[between(self._chance, 0, len(members) - 1)]
        steps = visits.visit(self._chance, self._plan.currency)
        return self._step(f"c-{user:07}", self._trace(next(self._ids)), next(steps), steps)(at)

    def _step(self, user: str, trace: str, step: visits.Step, rest: Iterator[visits.Step]) -> Made:
        """The event of a step; what comes after it in the visit follows when it is sent."""

        def made(at: int) -> Record:
            following = next(rest, None)
            if following is not None:
                self._send_later(at + following.after_ms, self._step(user, trace, following, rest))
            if step.event_type == "purchase":
                self._send_later(at, self._request(user, step.properties, trace))
            return self._event(at, user, step.event_type, step.properties, trace)

        return made

    def _event(self, ms: int, user: str, event_type: str, properties: dict[str, str], trace: str) -> Record:
        """An event; a user has no two of the same millisecond, so that the order of a user's events is certain."""
        if ms > self._start_ms - HOUR_MS:
            ms = self._last_ms[user] = max(ms, self._last_ms.get(user, 0) + 1)
        at = event_records.timestamp(ms)
        value = {"user_id": user, "event_type": event_type, "timestamp": at, "properties": properties}
        return _record(USER_EVENTS, self._identifier(USER_EVENTS), user, value, trace=trace)

    def _impression(self, number: int, at: int) -> Record:
        """Shows an ad, and perhaps has it clicked: in time, or far too late."""
        identifier, record = self._shown(at)
        late = self._take(number, "late_click")
        if late is not None or self._chance.random() < CLICK_RATIO:
            delay = between(self._chance, *(LATE_CLICK_MS if late else CLICK_MS))
            self._send_later(at + delay, self._click(identifier, fault=late))
        return record

    def _shown(self, at: int) -> tuple[str, Record]:
        identifier = self._identifier(IMPRESSIONS)
        user = f"c-{between(self._chance, HOT_USER + 1, self._plan.customers):07}"
        ad = f"a-{between(self._chance, 1, ADS):03}"
        value = {"ad_id": ad, "user_id": user, "timestamp": event_records.timestamp(at)}
        return identifier, _record(IMPRESSIONS, identifier, identifier, value, trace=identifier)

    def _click(self, impression: str, *, fault: str | None = None) -> Made:
        def made(at: int) -> Record:
            value = {"impression_id": impression, "timestamp": event_records.timestamp(at)}
            return replace(_record(CLICKS, self._identifier(CLICKS), impression, value, trace=impression), fault=fault)

        return made

    def _request(self, user: str, properties: Mapping[str, str], trace: str) -> Made:
        """Asks whether a purchase will be refunded, in the trace of the visit that it is the end of."""

        def made(at: int) -> Record:
            identifier = self._identifier(PREDICTION_REQUESTS)
            known = visits.purchase(self._bought, int(user.removeprefix("c-")), properties)
            value = {
                "transaction_id": f"t{identifier.removeprefix(PREFIX[PREDICTION_REQUESTS])}",
                "customer_id": user,
                "created_at": event_records.timestamp(at),
                **known,
            }
            return _record(PREDICTION_REQUESTS, identifier, user, value, trace=trace)

        return made

    def _sample_request(self, at: int, *, amount: str) -> Record:
        user = between(self._placing, HOT_USER + 1, self._plan.customers)
        product = f"p-{between(self._placing, 1, visits.PRODUCTS):05}"
        properties = {"product_id": product, "amount": amount}
        return self._request(f"c-{user:07}", properties, self._trace(next(self._ids)))(at)

    def _identifier(self, topic: str) -> str:
        return f"{PREFIX[topic]}-{self._plan.name}-{next(self._ids):08}"

    def _trace(self, number: int) -> str:
        return f"visit-{self._plan.name}-{number}"


def _record(topic: str, identifier: str, key: str, value: Value, *, trace: str) -> Record:
    """A record whose span is of its own, in the trace of what caused it."""
    context = event_records.traceparent(trace, f"{trace}/{identifier}")
    return Record(topic, key.encode(), event_records.encoded({KEY_FIELD[topic]: identifier} | value), context)


def _sending(record: Record) -> Made:
    return lambda _: record
