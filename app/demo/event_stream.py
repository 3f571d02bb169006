"""The live side of the shop: an endless, seeded stream of records, with planted faults.

The n-th record is sent n / rate seconds after the start. Time passes only by records, so that the same plan gives the
same bytes however fast they are sent. Event times are those of sending, but for records that come late.

What a query finds in the stream must not depend on how the records fall into micro-batches. So what comes late comes
far inside the watermark or far outside: the constants leave room on both sides.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from app.demo import event_records, visits
from app.demo.customers import UNKNOWN, UNKNOWN_FROM, customer_count
from app.demo.draws import Chance, Draws
from app.demo.event_records import CLICKS, IMPRESSIONS, KEY_FIELD, MALFORMED, PREDICTION_REQUESTS, USER_EVENTS, Record
from app.demo.faults import PARTS, Layout
from app.demo.ledger import Plan

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS

DELAYS_MS: Final = {
    "late": (30 * SECOND_MS, 2 * MINUTE_MS),
    "out_of_order": (1 * SECOND_MS, 10 * SECOND_MS),
    "duplicate_near": (1, 1 * SECOND_MS),
    "duplicate_far": (30 * SECOND_MS, 2 * MINUTE_MS),
}
"""How much later a record comes, or comes again: a watermark of at least twice the most keeps it in any batch."""
HELD: Final = ("late", "out_of_order")
"""Records of these kinds come only later, the others again."""
VERY_LATE_MS: Final = (24 * HOUR_MS, 36 * HOUR_MS)
"""How old a very late event is: a watermark of less than half the least drops it in any batch."""
SETTLED_MS: Final = 10 * MINUTE_MS
"""Very late events come only then: Spark drops late rows by the watermark before the last batch, so that the first two
batches drop nothing; together they must not be longer than this."""

CLICK_RATIO: Final = 0.2
CLICK_MS: Final = (1 * SECOND_MS, 2 * MINUTE_MS)
LATE_CLICK_MS: Final = (20 * MINUTE_MS, 30 * MINUTE_MS)
"""How long after its impression a click comes: in time or far too late, for any bound from 3 to 19 minutes."""

IMPRESSION_RATIO: Final = 0.6
ADS: Final = 40
CUSTOMERS: Final = customer_count(10_000)
HOT_USER: Final = 1
COHORTS: Final = 10
COHORT_MS: Final = 5 * MINUTE_MS
"""Customers shop in turns, a tenth of them at a time: each is away for 45 minutes, so that sessions end."""

SINGLE_FAULTS: Final = (
    *("hot_user", "unknown_user", "very_late", "unknown_click", "negative_amount"),
    *MALFORMED,
)
"""Kinds of records that no visit or impression causes."""
SPOILT_TOPICS: Final = (USER_EVENTS, USER_EVENTS, IMPRESSIONS, CLICKS, PREDICTION_REQUESTS)
"""The topics of malformed records, in turns."""


class Draft(NamedTuple):
    """A record that will be sent; its value, whose first field is its id, does not have its instant yet."""

    topic: str
    key: str
    value: dict[str, Any]
    trace: str
    fault: str | None = None


def records(plan: Plan) -> Iterator[Record]:
    """The records of a plan in the order of sending, without an end."""
    return map(_Stream(plan).record, itertools.count())


class _Stream:
    """The state between two records: what is still to be sent, and which faults are still to be planted."""

    def __init__(self, plan: Plan) -> None:
        draws = Draws(plan.seed, "stream")
        self._plan, self._name, self._start_ms = plan, plan.name, plan.instant_ms(0)
        self._shop, self._placing = Chance(draws, "shop"), Chance(draws, "faults")
        layout = Layout(PARTS, plan.shares, draws)
        kinds = [*plan.shares, None]
        self._faults = [kinds[code] for code in layout.at(np.arange(PARTS))[0].tolist()]
        self._owed: list[str] = []
        self._spoilt: Counter[str] = Counter()
        self._due: list[tuple[int, int, Draft | Record]] = []
        self._ids = itertools.count()
        self._last_ms: dict[str, int] = {}

    def record(self, number: int) -> Record:
        """The next record, which has that number."""
        at = self._plan.instant_ms(number)
        fault = self._faults[number % PARTS]
        if fault is not None:
            self._owed.append(fault)
        while True:
            record = self._next(at)
            kind = None if record.fault else self._take(DELAYS_MS)
            if kind is None:
                return record
            self._send_later(at + self._placing.between(*DELAYS_MS[kind]), replace(record, fault=kind))
            if kind not in HELD:
                return record

    def _take(self, kinds: Collection[str]) -> str | None:
        """The first of these kinds that is to be planted."""
        kind = next((kind for kind in self._owed if kind in kinds), None)
        if kind is not None:
            self._owed.remove(kind)
        return kind

    def _send_later(self, due: int, record: Draft | Record) -> None:
        heapq.heappush(self._due, (due, next(self._ids), record))

    def _next(self, at: int) -> Record:
        if not self._due or self._due[0][0] > at:
            fault = self._take(SINGLE_FAULTS)
            if fault is not None and (fault != "very_late" or at >= self._start_ms + SETTLED_MS):
                return self._single_fault(at, fault)
            if self._shop.unit() < IMPRESSION_RATIO:
                return self._shown(at)
            self._visit(at)
        due = heapq.heappop(self._due)[2]
        return due if isinstance(due, Record) else self._sent(due, at)

    def _sent(self, draft: Draft, at: int) -> Record:
        """A record that is sent now; a user has no two events of the same instant, so that their order is certain."""
        if draft.topic == USER_EVENTS and draft.fault != "very_late":
            at = self._last_ms[draft.key] = max(at, self._last_ms.get(draft.key, 0) + 1)
        value = draft.value | {event_records.instant_field(draft.value): event_records.timestamp(at)}
        context = event_records.traceparent(draft.trace, f"{draft.trace}/{value[KEY_FIELD[draft.topic]]}")
        return Record(draft.topic, draft.key.encode(), event_records.encoded(value), context, draft.fault)

    def _visit(self, at: int) -> None:
        """Lets a customer in, and plans all steps of the visit, the first of them for now."""
        members = range(HOT_USER + 1 + (at - self._start_ms) // COHORT_MS % COHORTS, CUSTOMERS + 1, COHORTS)
        user, trace = members[self._shop.between(0, len(members) - 1)], self._trace()
        for after_ms, event_type, properties in visits.visit(self._shop, self._plan.currency):
            at += after_ms
            self._send_later(at, self._event(user, event_type, properties, trace))
            if event_type == "purchase":
                self._send_later(at, self._request(user, properties, trace))

    def _shown(self, at: int) -> Record:
        """Shows an ad, and perhaps has it clicked: in time, or far too late."""
        shown = self._impression()
        late = self._take(("late_click",))
        if late is not None or self._shop.unit() < CLICK_RATIO:
            delay = self._shop.between(*(LATE_CLICK_MS if late else CLICK_MS))
            self._send_later(at + delay, self._click(shown.key)._replace(fault=late))
        return self._sent(shown, at)

    def _single_fault(self, at: int, kind: str) -> Record:
        match kind:
            case "very_late":  # a view, so that queries without a watermark have the same answer
                at -= self._placing.between(*VERY_LATE_MS)
                draft = self._sample(USER_EVENTS)
            case "hot_user":
                draft = self._view(HOT_USER)
            case "unknown_user":
                draft = self._view(UNKNOWN_FROM + self._placing.between(0, UNKNOWN - 1))
            case "unknown_click":
                draft = self._sample(CLICKS)
            case "negative_amount":
                draft = self._sample(PREDICTION_REQUESTS, amount="-1.00")
            case _:
                return self._malformed(at, kind)
        return self._sent(draft._replace(fault=kind), at)

    def _malformed(self, at: int, kind: str) -> Record:
        """A record of each topic in turns, but mostly of events."""
        variant = self._spoilt[kind]
        self._spoilt[kind] += 1
        record = self._sent(self._sample(SPOILT_TOPICS[variant % len(SPOILT_TOPICS)]), at)
        value = MALFORMED[kind](msgspec.json.decode(record.value), variant // 2)
        return replace(record, value=value, fault=kind)

    def _sample(self, topic: str, *, amount: str = "1.00") -> Draft:
        """A record that nothing causes: a view, an impression, a click on none, or a question about no purchase."""
        user = self._placing.between(HOT_USER + 1, CUSTOMERS)
        if topic == USER_EVENTS:
            return self._view(user)
        if topic == IMPRESSIONS:
            return self._impression()
        if topic == CLICKS:
            return self._click(f"i-{self._name}-none")
        cart = {"product_id": visits.product(self._placing), "amount": amount}
        return self._request(user, cart, self._trace())

    def _view(self, user: int) -> Draft:
        return self._event(user, "view", {"product_id": visits.product(self._placing)}, self._trace())

    def _event(self, user: int, event_type: str, properties: dict[str, str], trace: str) -> Draft:
        key = f"c-{user:07}"
        value = {"user_id": key, "event_type": event_type, "timestamp": None, "properties": properties}
        return Draft(USER_EVENTS, key, {"event_id": self._identifier("e"), **value}, trace)

    def _impression(self) -> Draft:
        identifier = self._identifier("i")
        ad, user = f"a-{self._shop.between(1, ADS):03}", f"c-{self._shop.between(HOT_USER + 1, CUSTOMERS):07}"
        value = {"impression_id": identifier, "ad_id": ad, "user_id": user, "timestamp": None}
        return Draft(IMPRESSIONS, identifier, value, identifier)

    def _click(self, impression: str) -> Draft:
        value = {"click_id": self._identifier("k"), "impression_id": impression, "timestamp": None}
        return Draft(CLICKS, impression, value, impression)

    def _request(self, user: int, properties: dict[str, str], trace: str) -> Draft:
        """Asks whether a purchase will be refunded, in the trace of the visit that it is the end of."""
        key, identifier = f"c-{user:07}", self._identifier("r")
        ids = {"request_id": identifier, "transaction_id": f"t{identifier.removeprefix('r')}", "customer_id": key}
        known = visits.purchase(self._shop, user, properties)
        return Draft(PREDICTION_REQUESTS, key, {**ids, "created_at": None, **known}, trace)

    def _identifier(self, prefix: str) -> str:
        return f"{prefix}-{self._name}-{next(self._ids):08}"

    def _trace(self) -> str:
        return f"visit-{self._name}-{next(self._ids)}"
