"""The annexes of this installation, and what each adds.

An annex is a folder of `spark_app.annexes`. Its `plugin.py` lists in `ADDS` what it adds: values of classes that the
rooms which look for them declare, such as a `Command`. Any annex can be left out of an installation: nothing imports
it, and whoever asks for what it adds is told that it is missing.
"""

import pkgutil
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Final, TypeVar

from spark_app.errors import MachineError

Kind = TypeVar("Kind")
PACKAGE: Final = "spark_app.annexes"


@cache
def installed() -> dict[str, Sequence[object]]:
    """What each annex adds, by its name."""
    package = find_spec(PACKAGE)
    folders = [] if package is None else pkgutil.iter_modules(package.submodule_search_locations)
    return {each.name: import_module(f"{PACKAGE}.{each.name}.plugin").ADDS for each in folders}


def added(kind: type[Kind]) -> list[Kind]:
    """What all annexes add of one kind."""
    return [each for values in installed().values() for each in values if isinstance(each, kind)]


def missing(annex: str, what: str) -> str:
    """The sentence about what an annex would add, had it not been left out; `what` is its subject.

    Example: `spark-app tune is a command of the annex tune`.
    """
    return (
        f"{what} of the annex {annex}, which was left out of this installation: "
        "install spark-app anew, with all its annexes"
    )


def require(annex: str, what: str) -> None:
    """Checks that an annex is installed.

    Raises:
        MachineError: It is not; the message begins with `what`, as that of `missing`.
    """
    if annex not in installed():
        raise MachineError(missing(annex, what))
