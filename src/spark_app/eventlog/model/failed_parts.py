"""Parts of an analysis that raise: each costs one sentence, and nothing of what other parts say."""

import traceback
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import TypeVar

Made = TypeVar("Made")
Other = TypeVar("Other")


class FailedParts:
    """The rules, sections and exporters that raised about an application, each with its first exception."""

    def __init__(self) -> None:
        """None has."""
        self._failures: dict[str, str] = {}

    def get(self, part: str, make: Callable[[], Made], otherwise: Other) -> Made | Other:
        """What a part makes; something else where it raises.

        Args:
            part: Kind and name of it, such as `rule spill`.
            make: Makes it.
            otherwise: Stands for it where it raises.
        """
        try:
            return make()
        except Exception as error:  # noqa: BLE001 - what the other parts say is still worth reading; `remarks` has it
            self._failures.setdefault(part, failure_of(error))
            return otherwise

    @property
    def remarks(self) -> Iterator[str]:
        """A sentence for each."""
        return (remark(part, failure) for part, failure in self._failures.items())


def remark(part: str, failure: str) -> str:
    """The sentence about a part that raised, of which nothing is shown."""
    version = metadata.version("spark-app")
    return f"A bug of spark-app {version}: the {part} raised {failure} and is left out; please report this sentence."


def failure_of(error: Exception) -> str:
    """The class of an exception, and the place that raised it."""
    return f"{type(error).__name__} at {place_of(error)}"


def place_of(error: Exception) -> str:
    """The file and the line that raised an exception."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"
