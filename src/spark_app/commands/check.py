"""`spark-app check`: the mistakes of a project that need no data to be seen."""

from typing import Final

from spark_app import formatting
from spark_app.commands import options
from spark_app.errors import ConfigError

HEADERS: Final = ("module", "what it is", "what it makes", "of what")


def check(*, json: options.Json = False, config: options.Config = None) -> None:
    """Look for mistakes in a project before it runs: calls each of its functions with frames without rows."""
    # Spark is imported only now, so that --help and usage errors answer at once.
    from spark_app.settings import load_settings
    from spark_app.spark import embedded

    settings = load_settings(config)
    with embedded.starting(settings) as jvm:
        from spark_app.commands.terminal import Terminal
        from spark_app.execution.checks import of_project
        from spark_app.execution.pipelines import PACKAGES
        from spark_app.execution.run import load_jobs

        terminal = Terminal()
        loaded = {job.name: job.pipeline for package in PACKAGES for job in load_jobs(settings, package)}
        with terminal:
            terminal.wait("starting Spark")
            found = of_project(settings, loaded, listener=terminal, jvm=jvm)
    document = {"modules": found.modules, "findings": found.findings}
    if len(found.mistakes) == 1:
        failure = ConfigError(found.mistakes[0].message)
    elif found.mistakes:
        failure = ConfigError(f"{formatting.quantity(len(found.mistakes), 'mistake')}, each with its line above")
    elif json:
        terminal.answer(**document)
        return
    else:
        terminal.table(HEADERS, [[each.name, each.kind, each.makes, each.reads] for each in found.modules])
        for note in found.notes:
            terminal.note(note.message)
        return
    if not json and len(found.mistakes) > 1:
        for each in found.mistakes:
            terminal.line(each.message)
    failure.document = document
    raise failure
