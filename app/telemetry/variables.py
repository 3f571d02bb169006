"""Takes out the standard variables that would end the program: on some values the SDK raises when it is imported."""

import re
from collections.abc import MutableMapping
from typing import Final

_ACCEPTED: Final = (
    (re.compile(r"OTEL_\w+_LIMIT"), re.compile(r"\s*(\d+|unset)\s*", re.IGNORECASE)),
    (re.compile(r"OTEL_METRICS_EXEMPLAR_FILTER"), re.compile(r"trace_based|always_on|always_off")),
)


def drop_wrong(variables: MutableMapping[str, str]) -> list[str]:
    """Removes variables whose values the SDK would not survive; what is wrong with them, one line each.

    An empty one is removed too, and nothing is said: the specification has it mean the same as none.
    """
    told = []
    for name, accepted in _ACCEPTED:
        for wrong in [key for key in variables if name.fullmatch(key) and not accepted.fullmatch(variables[key])]:
            value = variables.pop(wrong)
            if value.strip():
                told.append(f"{wrong} is {value!r}, which OpenTelemetry does not know: ignored")
    return told
