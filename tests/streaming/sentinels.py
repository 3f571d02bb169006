"""Records that only move the watermark, a day ahead: they close all windows before them."""

import datetime
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from app.demo.event_records import CLICKS, IMPRESSIONS, KEY_FIELD, USER_EVENTS, Record
from app.demo.ledger import Plan

SENTINEL_USER: Final = "c-0000000"
"""Their user, whom no customers file has; to queries they are records like any other."""
AHEAD: Final = datetime.timedelta(days=1)


def sentinels(plan: Plan, number: int) -> Sequence[Record]:
    """One record per topic with windows, a day after the record of that number.

    Spark drops what is older than the watermark, and reads partitions and files side by side. So sentinels belong
    after a drain: queries must have read everything else before.
    """
    at = datetime.datetime.fromtimestamp(plan.instant_ms(number) / 1000, datetime.UTC) + AHEAD
    identifier = f"sentinel-{plan.name}"
    values: dict[str, dict[str, Any]] = {
        USER_EVENTS: {"user_id": SENTINEL_USER, "event_type": "view", "properties": {}},
        IMPRESSIONS: {"ad_id": "a-000", "user_id": SENTINEL_USER},
        CLICKS: {"impression_id": identifier},
    }
    context = f"00-{'5e' * 16}-{'5e' * 8}-01"
    return [
        Record(
            topic,
            SENTINEL_USER.encode(),
            msgspec.json.encode({KEY_FIELD[topic]: identifier, **value, "timestamp": at}),
            context,
        )
        for topic, value in values.items()
    ]
