"""Removes standard variables with invalid values on which the SDK raises when it is imported."""

import re
from collections.abc import MutableMapping
from typing import Final

_ACCEPTED: Final = (
    (re.compile(r"OTEL_\w+_LIMIT"), re.compile(r"\s*(\d+|unset)\s*", re.IGNORECASE)),
    (re.compile(r"OTEL_METRICS_EXEMPLAR_FILTER"), re.compile(r"trace_based|always_on|always_off")),
)


def drop_wrong(variables: MutableMapping[str, str]) -> list[str]:
    """Removes variables with values on which the SDK raises; returns one line for each.

    An empty one is removed without a line: by the specification, it means the same as an absent one.
    """
    lines = []
    for name, accepted in _ACCEPTED:
        for wrong in [key for key in variables if name.fullmatch(key) and not accepted.fullmatch(variables[key])]:
            value = variables.pop(wrong)
            if value.strip():
                lines.append(f"{wrong} is ignored: OpenTelemetry does not accept {value!r}")
    return lines
