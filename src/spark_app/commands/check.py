"""`spark-app check`: the mistakes of a project that need no data to be seen."""

from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from spark_app import formatting
from spark_app.commands import options
from spark_app.errors import ConfigError

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal
    from spark_app.execution.checks import Checked

HEADERS: Final = ("module", "what it is", "what it makes", "of what")


def check(*, json: options.Json = False, config: options.Config = None) -> None:
    """Look for mistakes in a project before it runs: calls each of its functions with frames without rows."""
    # Spark is imported only now, so that --help and usage errors answer at once.
    from spark_app.execution import checked
    from spark_app.settings import load_settings
    from spark_app.spark import embedded

    settings = load_settings(config)
    known = checked.without_mistakes(settings)
    with nullcontext() if known else embedded.starting(settings) as jvm:
        from spark_app.commands.terminal import Terminal
        from spark_app.execution import checks

        terminal = Terminal()
        loaded = checks.load(settings)
        with terminal:
            terminal.wait("calling functions without rows")
            found = checks.of_project(settings, loaded, known, listener=terminal, jvm=jvm)
    answer(found, terminal, is_json=json)


def answer(found: "Checked", terminal: "Terminal", *, is_json: bool) -> None:
    """Prints the modules, and what could not be checked without data.

    Raises:
        ConfigError: There is a mistake; of several, each is printed.
    """
    document = {"modules": found.modules, "findings": found.findings}
    if found.mistakes:
        if len(found.mistakes) > 1 and not is_json:
            for each in found.mistakes:
                terminal.line(each.message)
        several = f"{formatting.quantity(len(found.mistakes), 'mistake')}, each with its line above"
        failure = ConfigError(found.mistakes[0].message if len(found.mistakes) == 1 else several)
        failure.document = document
        raise failure
    if is_json:
        terminal.answer(**document)
        return
    terminal.table(HEADERS, [[each.name, each.kind, each.makes, each.reads] for each in found.modules])
    for note in found.notes:
        terminal.note(note.message)
