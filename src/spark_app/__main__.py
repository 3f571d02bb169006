"""`spark-app`: arguments and exit codes, nothing else.

Started as `spark-app`, as `python -m spark_app`, or by `spark-submit app/__main__.py` in a project.
"""

import os
import signal
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

if not __package__:  # Started as a file: its folder must not lend its modules' names to others, but hold `spark_app`.
    sys.path[:] = [str(Path(__file__).resolve().parent.parent), *sys.path[1:]]

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from spark_app.commands import errors, options, plugins
from spark_app.commands.bridge import bridge
from spark_app.commands.check import check
from spark_app.commands.compare import compare
from spark_app.commands.doctor import doctor
from spark_app.commands.etl import etl
from spark_app.commands.graph import graph
from spark_app.commands.init import init
from spark_app.commands.ml import ml
from spark_app.commands.observe import observe
from spark_app.commands.plan import plan
from spark_app.commands.prune import prune
from spark_app.commands.report import report
from spark_app.commands.resend import resend
from spark_app.commands.show import show
from spark_app.commands.stale import stale
from spark_app.commands.streaming import SUBCOMMANDS, require_new_form, streaming
from spark_app.commands.tables import tables
from spark_app.errors import ConfigError, MachineError, UsageError
from spark_app.execution import demo
from spark_app.installation import extras

NAME: Final = "spark-app"
MODES: Final = ("etl", "streaming", "ml")
OF_PROJECT: Final = "The project"


def _common(*, debug: options.Debug = False) -> None:
    """The options that every command has."""


COMMON: Final = typer.Typer(add_completion=False)
COMMON.command()(_common)


class Verb(TyperCommand):
    """A command that also takes the common options, which are not passed to its function.

    Attributes:
        extra: What a command of the project needs; None for the commands of this program.
    """

    extra: str | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.params += typer.main.get_command(COMMON).params

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parses the arguments, and notes `--json`, `--debug` and `--config` for the report of a failure."""
        output = ctx.ensure_object(errors.OutputOptions)
        output.verb = self.name or ""
        if not ctx.allow_interspersed_args:  # what follows may be options of the observed command
            output.json = output.debug = False
        rest = super().parse_args(ctx, args)
        output.json, output.debug = ctx.params.get("json") or False, ctx.params.pop("debug")
        output.config = ctx.params.get("config")
        return rest

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Runs the command, if what it needs is installed."""
        word = (self.name or "").partition(" ")[0]
        annex = ANNEXED.get(word)
        extras.require(self.name or "", self.extra or (annex.extra if annex else extras.EXTRAS.get(word)))
        return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """The words of the usage line, without the braces that typer puts around required arguments."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def get_help_option(self, ctx: typer.Context) -> TyperOption | None:  # type: ignore[override]
        """The option `--help`."""
        return _switch(super().get_help_option(ctx))


class Verbs(TyperGroup):
    """The group of all commands, with the same `--help`."""

    def get_help_option(self, ctx: typer.Context) -> TyperOption | None:  # type: ignore[override]
        """The option `--help`."""
        return _switch(super().get_help_option(ctx))


def _switch(option: TyperOption | None) -> TyperOption | None:
    if option is not None:
        option.metavar = ""
    return option


program = typer.Typer(
    name=NAME,
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 bug, 2 usage, configuration or machine, 3 input missing, "
    "4 quality gate, 5 condition of --fail-on, 130 interrupted.",
)


def _show_version(asked: bool) -> None:  # noqa: FBT001 - typer gives it so
    if asked:
        from importlib.metadata import version

        typer.echo(f"{NAME} {version(NAME)}")
        raise typer.Exit


@program.callback()
def root(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    _mode: Annotated[
        str | None, typer.Option("--mode", metavar="|".join(MODES), help="The same as the command of that name.")
    ] = None,
) -> None:
    """Run checked and traced Spark pipelines, and see what any Spark application did, and why."""


def _named(*verbs: Callable[..., None]) -> dict[str, Callable[..., None]]:
    return {verb.__name__: verb for verb in verbs}


ANNEXED: Final = plugins.commands()
VERBS: Final[Mapping[str, Mapping[str, Callable[..., None]]]] = {
    "Pipelines and tables": {
        **_named(init, check, etl, streaming),
        **SUBCOMMANDS,
        **_named(ml, graph, plan, tables, show, stale),
    },
    "Any Spark application": {
        **_named(observe, report, compare, bridge, prune),
        **{name: each.function for name, each in ANNEXED.items()},
    },
    "The stack": _named(resend, doctor),
}
for panel, verbs in VERBS.items():
    for name, verb in verbs.items():
        # Options after the observed command belong to that command.
        takes_program = verb is observe or (name in ANNEXED and ANNEXED[name].takes_program)
        own = {"allow_interspersed_args": not takes_program}
        further = ", ".join(other for other in verbs if other.startswith(f"{name} "))
        epilog = f"Further commands: {further}." if further else None
        program.command(name, cls=Verb, rich_help_panel=panel, context_settings=own, epilog=epilog)(verb)


def command_line(arguments: Sequence[str] = ()) -> Any:
    """The command that arguments are for, and the current project's commands where it is none of this program.

    So another's package of the name of the project's, or a mistake in it, does not keep a user from observing a job.

    Raises:
        ConfigError: The arguments name a command that only the project may have, and it cannot be loaded.
    """
    command: Any = typer.main.get_command(program)
    first = next(iter(arguments), "--help")
    if first in command.commands or first.startswith("--mode"):
        return command
    plugins.require(first)
    with suppress(ConfigError) if first.startswith("-") else nullcontext():
        command.commands |= _of_project()
    return command


def _of_project() -> dict[str, Any]:
    """The commands of the current project by name."""
    found, added = demo.current(), dict[str, Any]()
    if found is not None:
        of_project = typer.Typer()
        for name, (function, _) in found.COMMANDS.items():
            of_project.command(name, cls=Verb, rich_help_panel=OF_PROJECT)(function)
        group: Any = typer.main.get_group(of_project)
        added |= group.commands
        for name, (_, extra) in found.COMMANDS.items():
            added[name].extra = extra
    return added


def main() -> NoReturn:
    """Runs the command line, and ends the process with its exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as below `nohup`
            signal.signal(number, _interrupt)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: output is dropped, and no other file gets its descriptor
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    code = run(sys.argv[1:])
    # Python that is interrupted in the `exec` of a text, as imports of dataclasses are, ends itself by SIGINT below
    # `python -m`, though the interruption was handled: until it has executed another text.
    exec("")
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Runs a command and returns its exit code; never raises."""
    output = errors.output_options(arguments)
    try:
        _require_folder()
        command = command_line(arguments)
        given = spelled_out(arguments, command.commands) or ["--help"]
        command._main_shell_completion({}, NAME)  # ends the program if a shell asks what comes next
        with command.make_context(NAME, given, obj=output) as context:
            command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # the reader of --help went away, which is no failure
            return 0
        return end.code if isinstance(end.code, int) else errors.report(end, output)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place that can explain a failure
        return errors.report(error, output)
    return 0


def spelled_out(arguments: Sequence[str], commands: Container[str] = ()) -> list[str]:
    """The arguments with `--mode etl` replaced by the verb `etl`, and so for each mode.

    Two words such as `streaming status` and `data stream` are one command.

    Raises:
        UsageError: There is no such mode.
    """
    given = _with_verb_first(arguments)
    if " ".join(given[:2]) in commands:
        return [" ".join(given[:2]), *given[2:]]
    if given[:1] == [streaming.__name__]:
        require_new_form(given)
    return given


def _with_verb_first(arguments: Sequence[str]) -> list[str]:
    given = list(arguments)
    if given and not given[0].startswith("-"):
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
        raise MachineError("the current folder was deleted: change to another folder") from error


def _verb(mode: str) -> str:
    if mode not in MODES:
        raise UsageError(f"unknown --mode {mode!r}; use {', '.join(MODES)}")
    return mode


def _interrupt(_signal: int, _frame: Any) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
