"""`spark-app doctor`: is each hop of the running stack well, and does what is sent through it arrive?"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import typer

from app.commands import cells, failures, options
from app.errors import MachineError

if TYPE_CHECKING:
    from app.commands.checks import Check
    from app.commands.terminal import Terminal

ARRIVAL_SECONDS: Final = 30.0
STYLES: Final = {"ok": "green", "down": "red", "lost": "red", "left out": "yellow"}


def doctor(*, json: options.Json = False, config: options.Config = None, _debug: options.Debug = False) -> None:
    """Look at the running stack hop by hop: is each well, and does what is sent arrive?"""
    # What speaks to the stack is imported only now: --help and a wrong argument answer at once.
    from app.commands import checks
    from app.commands.terminal import Terminal
    from app.settings import load_settings

    settings = load_settings(config)
    terminal = Terminal(out=sys.stdout, err=sys.stderr)
    with terminal:
        terminal.wait("asking every hop")
        found = checks.examined(settings, seconds=ARRIVAL_SECONDS)
    if json:
        document(terminal, found)
    else:
        listing(terminal, found)


def listing(terminal: "Terminal", checks: Sequence["Check"]) -> None:
    """Prints a row per hop, and what to look at where it is not well.

    Raises:
        MachineError: Something is down or lost.
    """
    rows = [(check.hop, check.state, cells.literal(check.found)) for check in checks]
    terminal.table(("hop", "state", "found"), rows, styles=STYLES)
    hints = [(check.hop, check.look_at) for check in checks if check.look_at]
    if hints:
        terminal.line()
        terminal.table(("hop", "look at"), hints)
    error = verdict(checks)
    if error is not None:
        raise error


def document(terminal: "Terminal", checks: Sequence["Check"]) -> None:
    """Prints the same as one JSON document.

    Raises:
        typer.Exit: Something is down or lost; the document and a line say what.
    """
    error = verdict(checks)
    if error is None:
        terminal.document({"exit_code": 0, "error": None, "checks": checks})
        return
    told = failures.failure(error)
    about = {"type": told.kind, "message": told.message}
    terminal.document({"exit_code": told.exit_code, "error": about, "checks": checks})
    terminal.note(f"error: {told.message}")
    raise typer.Exit(told.exit_code)


def verdict(checks: Sequence["Check"]) -> MachineError | None:
    """The one line about all that is not well; None when all is."""
    kinds = {"down": "down", "lost": "lost on the way"}
    bad = {text: [check.hop for check in checks if check.state == state] for state, text in kinds.items()}
    said = [f"{text}: {', '.join(hops)}" for text, hops in bad.items() if hops]
    return MachineError(f"the stack is not well; {'; '.join(said)}") if said else None
