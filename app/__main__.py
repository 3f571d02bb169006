"""`spark-app`: arguments and exit codes, nothing else.

Started as `spark-app`, as `python -m app`, or by `spark-submit app/__main__.py`.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

if not __package__:  # Started as a file: its folder must not lend its modules' names to others, but hold `app`.
    sys.path[:] = [str(Path(__file__).resolve().parent.parent), *sys.path[1:]]

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from app.commands import failures, options
from app.commands.bridge import bridge
from app.commands.compare import compare
from app.commands.data import data
from app.commands.doctor import doctor
from app.commands.etl import etl
from app.commands.observe import observe
from app.commands.report import report
from app.commands.show import show
from app.commands.tables import tables
from app.errors import MachineError, UsageError

MODES: Final = ("etl",)
LATER_MODES: Final = ("streaming", "ml")


def _common(*, debug: options.Debug = False) -> None:
    """The options that every command has; they are the program's own business."""


COMMON: Final = typer.Typer(add_completion=False)
COMMON.command()(_common)


class Verb(TyperCommand):
    """A command with the common options, which it does not see itself."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.params += typer.main.get_command(COMMON).params

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parses, and notes for failures what was asked for indeed, in place of what the bare words let suppose."""
        asked = ctx.ensure_object(failures.Asked)
        if not ctx.allow_interspersed_args:  # the words may be those of another command
            asked.json = asked.debug = False
        rest = super().parse_args(ctx, args)
        asked.json, asked.debug = ctx.params.get("json", False), ctx.params.pop("debug")
        return rest

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """The words of the usage line, without typer's braces around what must be given."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def get_help_option(self, ctx: typer.Context) -> TyperOption | None:  # type: ignore[override]
        """The option `--help`."""
        return _switch(super().get_help_option(ctx))


class Verbs(TyperGroup):
    """All commands, with the same `--help`."""

    def get_help_option(self, ctx: typer.Context) -> TyperOption | None:  # type: ignore[override]
        """The option `--help`."""
        return _switch(super().get_help_option(ctx))


def _switch(option: TyperOption | None) -> TyperOption | None:
    if option is not None:
        option.metavar = ""
    return option


program = typer.Typer(
    name="spark-app",
    cls=Verbs,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 bug, 2 usage, configuration or machine, 3 input missing, "
    "4 quality gate, 130 interrupted.",
)


@program.callback()
def root(
    *,
    _mode: Annotated[
        str | None, typer.Option("--mode", metavar="|".join(MODES), help="Another way to name the command.")
    ] = None,
) -> None:
    """A daily Spark job that is checked, traced and safe to repeat; and what any Spark application did, and why."""


VERBS: Final[Mapping[str, Sequence[Callable[..., None]]]] = {
    "The daily job": (etl, data, tables, show),
    "Any Spark application": (observe, report, compare, bridge),
    "The stack": (doctor,),
}
for panel, verbs in VERBS.items():
    for verb in verbs:
        # What follows the command that is observed is its own, options too.
        own = {"allow_interspersed_args": verb is not observe}
        program.command(cls=Verb, rich_help_panel=panel, context_settings=own)(verb)


def main() -> NoReturn:
    """Does what the command line asks, and ends the process with the exit code that says how it went."""
    signal.signal(signal.SIGTERM, _interrupt)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: what is said goes nowhere, and no file of ours takes its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Does what the arguments ask; gives the exit code and never raises."""
    asked = failures.asked(arguments)
    try:
        _require_folder()
        given = spelled_out(arguments) or ["--help"]
        command = typer.main.get_command(program)
        with command.make_context("spark-app", given, obj=asked) as context:
            command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # so rich says that the reader of --help went away: no failure
            return 0
        return end.code if isinstance(end.code, int) else failures.report(end, asked)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place where a failure can be explained
        return failures.report(error, asked)
    return 0


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--mode etl` replaced by the verb `etl`.

    Raises:
        UsageError: The mode is none, or none yet.
    """
    given = list(arguments)
    if not given or not given[0].startswith("-"):
        return given
    for position, argument in enumerate(given):
        name, has_value, mode = argument.partition("=")
        rest = given[position + 1 :]
        if name == "--mode" and (has_value or rest):
            return [_verb(mode if has_value else rest.pop(0)), *given[:position], *rest]
    return given


def _require_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise MachineError("the folder that this was started in is not there any more: change to another") from error


def _verb(mode: str) -> str:
    if mode in LATER_MODES:
        raise UsageError(f"--mode {mode} is not there yet; there is {', '.join(MODES)}")
    if mode not in MODES:
        raise UsageError(f"--mode {mode!r} is not known; there is {', '.join(MODES)}")
    return mode


def _interrupt(_signal: int, _frame: Any) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
