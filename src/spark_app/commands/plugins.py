"""What annexes add to the commands."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spark_app.installation import annexes

ANNEXES: Final = {"incident": "incidents", "lineage": "lineage", "mcp": "mcp", "serve": "serve", "tune": "tune"}
"""The annex of each command that belongs to one."""


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
class Forecasts:
    """What `spark-app compare` says of forecasts that were made for a run.

    Attributes:
        decided: Of the terminal, the settings and the profile of a run: the forecasts that it decides, and lines about
            them.
    """

    decided: Callable[[Any, Any, Any], tuple[Sequence[Any], Sequence[str]]]


@dataclass(frozen=True)
class Examples:
    """Commands to try on the stack, which the first page of the stack lists.

    Attributes:
        commands: What each does.
    """

    commands: Callable[[], Mapping[str, str]]


def commands() -> dict[str, Command]:
    """The commands of all annexes by name."""
    return {command.function.__name__: command for command in annexes.added(Command)}


def require(command: str) -> None:
    """Checks that the annex of a command, if it belongs to one, is installed.

    Raises:
        MachineError: It is not.
    """
    if command in ANNEXES:
        annexes.require(ANNEXES[command], f"spark-app {command} is a command")


def forecasts(terminal: Any, settings: Any, profile: Any) -> tuple[list[Any], list[str]]:
    """The forecasts that a run decides, and lines about them; none without the annex that makes them."""
    found = [each.decided(terminal, settings, profile) for each in annexes.added(Forecasts)]
    return [each for own, _ in found for each in own], [line for _, lines in found for line in lines]


def examples() -> dict[str, str]:
    """Commands to try on the stack, each with what it does; none without an annex that has some."""
    return {command: text for each in annexes.added(Examples) for command, text in each.commands().items()}
