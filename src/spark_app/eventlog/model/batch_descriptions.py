"""What Spark calls the work of a micro-batch: the name of its query, then lines `id = ...`, `runId = ...`, `batch = 7`.

Source: `StreamExecution.getBatchDescriptionString`, of which `events` has taken the markup out.
"""

import re
from typing import Final, NamedTuple

_QUERY: Final = "\nid = "
_NUMBERED: Final = re.compile(r"(?P<query>\S+)\nrunId = \S+\nbatch = (?P<batch>\w+)")


class BatchDescription(NamedTuple):
    """The name of a streaming query, which may be empty, its id, and the number of a batch: `init` before the first."""

    name: str
    query: str
    batch: str


def parse(text: str | None) -> BatchDescription | None:
    """The batch that a description of a query or a job is about; None if it is about none."""
    name, _, ids = f"\n{text or ''}".partition(_QUERY)
    match = _NUMBERED.fullmatch(ids)
    return BatchDescription(name.strip(), match["query"], match["batch"]) if match else None
