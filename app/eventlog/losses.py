"""Why an executor is gone, as one of few kinds: what a cluster manager writes about it has many values."""

import re
from typing import Final

KINDS: Final = (
    ("released", r"killed by driver|no longer needed|idle|application (finished|ended|removed)|exited normally"),
    ("out_of_memory", r"OOM|out ?of ?memory|exceeding (physical |virtual )?memory|memory limit|code 137|code 52\b"),
    ("preempted", r"preempt|spot|evict"),
    ("decommissioned", r"decommission"),
    ("heartbeat_lost", r"heartbeat"),
    ("worker_lost", r"worker (is )?(lost|shut)|node (is )?lost|host|node"),
    ("disconnected", r"disassociated|disconnected|connection|RPC"),
    ("exited", r"exit|process lost|code \d+"),
)
"""Kinds and what marks them, the first that fits."""
RELEASED: Final = "released"
OTHER: Final = "other"
_MARKS: Final = tuple((kind, re.compile(mark, re.IGNORECASE)) for kind, mark in KINDS)


def kind_of(reason: str) -> str:
    """The kind of a reason as Spark logs it; `released` is what the application asked for, all others are losses."""
    return next((kind for kind, mark in _MARKS if mark.search(reason)), OTHER)
