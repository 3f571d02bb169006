"""Versions of Spark, as event logs have them."""

import re
from typing import Final

_RELEASE: Final = re.compile(r"(\d+)\.(\d+)")


def release(version: str | None) -> tuple[int, int] | None:
    """The major and the minor number of a version, to which distributions add words; None if it has none."""
    found = _RELEASE.match(version or "")
    return None if found is None else (int(found[1]), int(found[2]))
