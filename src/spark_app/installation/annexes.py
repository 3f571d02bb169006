"""The annexes of this installation, and what each adds.

An annex is a folder of `spark_app.annexes`. Its `plugin.py` lists in `ADDS` what it adds: values of classes that the
rooms which look for them declare, such as a `Command`. Any annex can be left out of an installation: nothing imports
it, and a command that needs what it adds says that it is missing.
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
def _loaded() -> tuple[dict[str, Sequence[object]], dict[str, str]]:
    """What each annex adds, and why others cannot be loaded, by their names."""
    package = find_spec(PACKAGE)
    folders = [] if package is None else pkgutil.iter_modules(package.submodule_search_locations)
    adds, failures = dict[str, Sequence[object]](), dict[str, str]()
    for name in (each.name for each in folders):
        try:
            adds[name] = import_module(f"{PACKAGE}.{name}.plugin").ADDS
        except Exception as error:  # noqa: BLE001 - all else works without it, and `missing` says why it does not
            failures[name] = f"{type(error).__name__}: {error}"
    return adds, failures


def installed() -> dict[str, Sequence[object]]:
    """What each annex adds, by its name; without annexes that cannot be loaded."""
    adds, _ = _loaded()
    return adds


def added(kind: type[Kind]) -> list[Kind]:
    """What all annexes add of one kind."""
    return [each for values in installed().values() for each in values if isinstance(each, kind)]


def missing(annex: str, what: str) -> str:
    """The sentence about what an annex would add, had it not been left out, or could it be loaded.

    Args:
        annex: Its name.
        what: The beginning of the sentence, as `spark-app tune is a command`.
    """
    _, failures = _loaded()
    if annex in failures:
        return f"{what} of the annex {annex}, which cannot be loaded: {failures[annex]}"
    return (
        f"{what} of the annex {annex}, which was left out of this installation: "
        "install spark-app anew, with all its annexes"
    )


def require(annex: str, what: str) -> None:
    """Checks that an annex is installed.

    Raises:
        MachineError: It is not, or it cannot be loaded; the message is that of `missing`.
    """
    if annex not in installed():
        raise MachineError(missing(annex, what))
