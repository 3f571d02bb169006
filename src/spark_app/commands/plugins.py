"""The annexes of this installation, and what each adds to the commands.

An annex is a folder of `spark_app.annexes` whose `plugin.py` says in `PLUGIN` what it adds. Any of them can be left out
of an installation: nothing imports it, and its commands then say that it is missing.
"""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from spark_app.errors import MachineError

PACKAGE: Final = "spark_app.annexes"
ANNEXES: Final = {"incident": "incidents", "lineage": "lineage", "mcp": "mcp", "serve": "serve", "tune": "tune"}
"""The annex of each command that belongs to one."""
Forecasts = Callable[[Any, Any, Any], tuple[Sequence[Any], Sequence[str]]]
"""Of the terminal, the settings and the profile of a run: the forecasts that the run decides, and lines about them."""


@dataclass(frozen=True)
class Command:
    """A command of an annex.

    Attributes:
        function: Has its name, arguments and options.
        extra: The extra of `pyproject.toml` that it needs.
        takes_program: Whether its arguments are another program, whose options are not its own.
    """

    function: Callable[..., None]
    extra: str | None = None
    takes_program: bool = False


@dataclass(frozen=True)
class Plugin:
    """What an annex adds.

    Attributes:
        commands: Its commands.
        forecasts: What `spark-app compare` says of forecasts that were made for a run.
        to_try: Commands to try on the stack, each with what it does: the first page of the stack lists them.
    """

    commands: Sequence[Command] = ()
    forecasts: Forecasts | None = None
    to_try: Callable[[], Mapping[str, str]] | None = None


@cache
def installed() -> dict[str, Plugin]:
    """The annexes by name."""
    package = find_spec(PACKAGE)
    folders = [] if package is None else pkgutil.iter_modules(package.submodule_search_locations)
    return {each.name: import_module(f"{PACKAGE}.{each.name}.plugin").PLUGIN for each in folders}


def commands() -> dict[str, Command]:
    """The commands of all annexes by name."""
    return {command.function.__name__: command for plugin in installed().values() for command in plugin.commands}


def require(command: str) -> None:
    """Checks that the annex of a command, if it belongs to one, is installed.

    Raises:
        MachineError: It is not.
    """
    annex = ANNEXES.get(command)
    if annex is not None and annex not in installed():
        raise MachineError(
            f"spark-app {command} is a command of the annex {annex}, which was left out of this installation: "
            "install spark-app anew, with all its annexes"
        )


def forecasts(terminal: Any, settings: Any, profile: Any) -> tuple[list[Any], list[str]]:
    """The forecasts that a run decides, and lines about them; none without the annex that makes them."""
    found = [plugin.forecasts(terminal, settings, profile) for plugin in installed().values() if plugin.forecasts]
    return [each for own, _ in found for each in own], [line for _, lines in found for line in lines]


def to_try() -> dict[str, str]:
    """Commands to try on the stack, each with what it does; none without an annex that has some."""
    offered = [plugin.to_try() for plugin in installed().values() if plugin.to_try]
    return {command: text for commands in offered for command, text in commands.items()}
