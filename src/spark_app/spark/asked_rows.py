"""Notices whether a program asks Spark for rows, so that what it does next may depend on them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from py4j.java_gateway import JavaMember

ASKING: Final = frozenset(
    {
        "collectToPython",
        "collectAsArrowToPython",
        "toPythonIterator",
        "tailToPython",
        "isEmpty",
        "showString",
        "htmlString",
        "getRowsToPython",
        "approxQuantile",
        "crosstab",
        "freqItems",
        "corr",
        "cov",
        "summary",
        "describe",
        "collectAndServe",
        "toLocalIteratorAndServe",
        "runJob",
        "fit",
        "evaluate",
    }
)
"""Methods of Java objects that hand over rows, or what is computed of them."""


class AskedRows:
    """Whether rows were asked for.

    Attributes:
        happened: Whether they were.
    """

    happened = False


@contextmanager
def asked_rows() -> Iterator[AskedRows]:
    """Whether this process asks for rows in the block."""
    found, original = AskedRows(), JavaMember.__call__

    def call(self: Any, *arguments: Any) -> Any:
        found.happened = found.happened or _is_asking(self, arguments)
        return original(self, *arguments)

    JavaMember.__call__ = call
    try:
        yield found
    finally:
        JavaMember.__call__ = original


def _is_asking(member: Any, arguments: tuple[Any, ...]) -> bool:
    if member.name == "pivot":  # without values, Spark looks for them in the rows
        return len(arguments) == 1
    if member.name == "count" and not member.target_id.startswith("z:"):  # that of groups makes another frame
        return str(member.container.getClass().getSimpleName()) == "Dataset"
    return member.name in ASKING
