"""`spark-app doctor`: checks each component of the running stack, and that telemetry arrives."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from spark_app.commands import cells, options
from spark_app.errors import MachineError

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal
    from spark_app.doctor.checks import Check

ARRIVAL_SECONDS: Final = 30.0
STYLES: Final = {"ok": "green", "down": "red", "lost": "red", "left out": "yellow"}


def doctor(*, json: options.Json = False, config: options.Config = None) -> None:
    """Check each component of the running stack, and that a trace, a metric and a log line arrive."""
    # OpenTelemetry is imported only now, so that --help and usage errors answer at once.
    from spark_app.commands.terminal import Terminal
    from spark_app.doctor import checks, containers
    from spark_app.settings import compose_variables, load_settings

    settings = load_settings(config)
    terminal = Terminal()
    terminal.wait("checking every component")
    project = compose_variables(settings.config.parent).get("COMPOSE_PROJECT_NAME")
    with terminal:
        results = checks.run_checks(settings, containers.services(project), seconds=ARRIVAL_SECONDS)
    if not json:
        listing(terminal, results)
    require_healthy(results)
    if json:
        terminal.answer(checks=results)


def listing(terminal: "Terminal", checks: Sequence["Check"]) -> None:
    """Prints a row per component, and where to look if it is unhealthy."""
    rows = [(check.component, check.state, cells.literal(check.finding)) for check in checks]
    terminal.table(("component", "state", "finding"), rows, styles=STYLES, is_prose=True)
    hints = [(check.component, check.look_at) for check in checks if check.look_at]
    if hints:
        terminal.line()
        terminal.table(("component", "look at"), hints, is_prose=True)


def require_healthy(checks: Sequence["Check"]) -> None:
    """Requires that every component is up and that all telemetry arrived.

    Raises:
        MachineError: A component is down or telemetry was lost; its document holds the checks.
    """
    texts = {"down": "down", "lost": "lost on the way"}
    unhealthy = {text: [check.component for check in checks if check.state == state] for state, text in texts.items()}
    problems = [f"{text}: {', '.join(components)}" for text, components in unhealthy.items() if components]
    if problems:
        error = MachineError(f"the stack is unhealthy; {'; '.join(problems)}")
        error.document = {"checks": checks}
        raise error
