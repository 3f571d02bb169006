"""What annexes add to the commands."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import typer

from spark_app.errors import UsageError
from spark_app.installation import annexes

Value = TypeVar("Value")
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


class Browsing(NamedTuple):
    """How a live page is served: the port on loopback, 0 for any; whether the browser is opened."""

    port: int
    opens: bool


class LivePage(Protocol):
    """A page that is served while an application runs."""

    def stop(self) -> None:
        """Renders no more."""

    def end(self, reports: Sequence[str]) -> None:
        """Tells browsers that look where the reports are, and shows them a single one."""


@dataclass(frozen=True)
class LivePages:
    """The pages of applications while they run.

    Attributes:
        command: Of the terminal, the settings, the thresholds, how it is served and the watcher of an observed command:
            serves the page of its newest application.
        require_log: Refuses the location of a log that cannot be followed, before anything is asked of it.
        log: The same as `command` of a source of a report: serves its page until its log has its end; None if it has
            ended before.
        as_of_now: A source of a report after that.
    """

    command: Callable[..., AbstractContextManager[LivePage]]
    require_log: Callable[[str], None]
    log: Callable[..., AbstractContextManager[LivePage | None]]
    as_of_now: Callable[[Any], Any]


@dataclass(frozen=True)
class FlameGraphs:
    """What is written of samples of stacks beside a report.

    Attributes:
        collapsed: Of the samples of a report and a folder: writes collapsed stacks, by stage; returns how many files.
        difference: As `difference_page.write`: writes a page with the flame graphs of two runs.
    """

    collapsed: Callable[..., int]
    difference: Callable[..., None]


def of_annex(annex: str) -> Callable[[typer.Context, typer.CallbackParam, Value], Value]:
    """The callback of an option that an annex makes work.

    Raises:
        MachineError: The option is given, and the annex was left out of this installation.
    """

    def check(context: typer.Context, option: typer.CallbackParam, value: Value) -> Value:
        if value:
            annexes.require(annex, f"spark-app {context.info_name} {option.opts[0]} is an option")
        return value

    return check


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


def live_pages(option: str, *, is_given: bool, port: int) -> LivePages | None:
    """What serves the page of an option; None where the option is not given.

    Raises:
        UsageError: There is a port without the option, which the message names.
    """
    if port and not is_given:
        raise UsageError(f"--port is the port of the live page: give {option}, too")
    return annexes.added(LivePages)[0] if is_given else None


def end(page: LivePage | None, reports: Sequence[str]) -> None:
    """Tells browsers that look at a page where the reports are; without a page, does nothing."""
    if page is not None:
        page.end(reports)


def forecasts(terminal: Any, settings: Any, profile: Any) -> tuple[list[Any], list[str]]:
    """The forecasts that a run decides, and lines about them; none without the annex that makes them."""
    found = [each.decided(terminal, settings, profile) for each in annexes.added(Forecasts)]
    return [each for own, _ in found for each in own], [line for _, lines in found for line in lines]


def examples() -> dict[str, str]:
    """Commands to try on the stack, each with what it does; none without an annex that has some."""
    return {command: text for each in annexes.added(Examples) for command, text in each.commands().items()}
