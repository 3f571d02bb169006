"""All incidents by name: the modules of the package `planted`, in the order of their names."""

import pkgutil
from functools import cache
from importlib import import_module

from spark_app.annexes.incidents import planted
from spark_app.annexes.incidents.incident import Incident
from spark_app.errors import UsageError


@cache
def incidents() -> dict[str, Incident]:
    """The incidents by name."""
    names = sorted(each.name for each in pkgutil.iter_modules(planted.__path__))
    return {name: import_module(f"{planted.__name__}.{name}").INCIDENT for name in names}


def named(name: str) -> Incident:
    """The incident of a name.

    Raises:
        UsageError: There is none.
    """
    known = incidents()
    if name not in known:
        raise UsageError(f"unknown incident {name!r}; use {', '.join(known)}")
    return known[name]
