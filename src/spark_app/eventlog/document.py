"""Types of fields of the JSON document (`report.results.schema`), which structs of the observer use for their own.

Such a struct is in the document as it is. `report.values.document` makes its values ready by these types: it masks
secrets in texts and cuts them, and rounds numbers.
"""

from typing import Annotated, Final

from msgspec import Meta, Struct

MAX_NAME: Final = 240
Count = Annotated[int, Meta(ge=0)]
Known = Count | None
Ms = Annotated[float, Meta(ge=0, multiple_of=1)]
"""Milliseconds, which the document rounds."""
Difference = Annotated[float, Meta(multiple_of=1)]
"""The same, which may be negative."""
Name = Annotated[str, Meta(extra={"line": MAX_NAME})]
"""A text on one line; any other text is cut at `values.MAX_TEXT`, and may have several."""


class StageKey(Struct, frozen=True):
    """The id and the attempt of a stage."""

    id: Count
    attempt: Count
