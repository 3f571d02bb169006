"""Classifies the reasons of executor losses: the texts of cluster managers have many values."""

import re
from typing import Final

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.executors import Executor
from spark_app.eventlog.model.pod_exit import pod_exit
from spark_app.redaction import excerpt

EXIT_OUT_OF_MEMORY: Final = r"code 52\b"
"""Of an `OutOfMemoryError`, in Spark's `SparkExitCode`."""
EXIT_KILLED: Final = r"code 137\b"
"""Of a process that got the signal KILL, in most cases for its memory."""
KINDS: Final = (
    ("released", r"killed by driver|no longer needed|idle|application (finished|ended|removed)|exited normally"),
    ("released", r"explicit termination request|exit(ed)? (with )?(exit )?code 0\b"),
    ("decommissioned", r"decommission"),
    ("evicted", r"evict"),
    ("preempted", r"preempt|spot"),
    (
        "out_of_memory",
        rf"OOM|out ?of ?memory|exceeding (physical |virtual )?memory|memory limit|{EXIT_KILLED}|{EXIT_OUT_OF_MEMORY}",
    ),
    ("deleted", r"pod was deleted"),
    ("heartbeat_lost", r"heartbeat"),
    ("worker_lost", r"worker (is )?(lost|shut)|node (is )?lost|host|node"),
    ("disconnected", r"disassociated|disconnected|connection|RPC"),
    ("exited", r"exit|process lost|code \d+"),
)
"""Kinds and their patterns; the first match counts."""
EXPECTED_REMOVALS: Final = frozenset({"released", "decommissioned"})
"""Kinds that are no loss: the executor was released, exited normally, or was decommissioned."""
OTHER: Final = "other"
_MARKS: Final = tuple((kind, re.compile(mark, re.IGNORECASE)) for kind, mark in KINDS)


def kind_of(reason: str) -> str:
    """The kind of a reason as Spark logs it; every kind that is not `EXPECTED_REMOVALS` is a loss."""
    pod = pod_exit(reason)
    text = reason if pod is None else pod.summary
    return next((kind for kind, mark in _MARKS if mark.search(text)), OTHER)


def summary_of(reason: str) -> str:
    """A reason in a line: on Kubernetes without the number of the executor and the statuses of its containers."""
    pod = pod_exit(reason)
    return excerpt((reason if pod is None else pod.summary) or "no reason given")


def is_lost(app: Application, executor: Executor) -> bool:
    """Whether an executor disappeared before the end of its application, without being released or decommissioned."""
    if executor.removed is None or kind_of(executor.reason or "") in EXPECTED_REMOVALS:
        return False
    return app.ended is None or executor.removed < app.ended
