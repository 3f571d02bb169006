"""`spark-app doctor`: is each hop of the running stack well, and does what is sent through it arrive?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from app.commands import cells, options
from app.errors import MachineError

if TYPE_CHECKING:
    from app.commands.checks import Check
    from app.commands.terminal import Terminal

ARRIVAL_SECONDS: Final = 30.0
STYLES: Final = {"ok": "green", "down": "red", "lost": "red", "left out": "yellow"}


def doctor(*, json: options.Json = False, config: options.Config = None) -> None:
    """Check each part of the running stack, and whether a trace, a metric and a log line arrive."""
    # What speaks to the stack is imported only now: --help and a wrong argument answer at once.
    from app.commands import checks
    from app.commands.terminal import Terminal
    from app.settings import load_settings

    settings = load_settings(config)
    terminal = Terminal()
    terminal.wait("asking every hop")
    with terminal:
        found = checks.examined(settings, seconds=ARRIVAL_SECONDS)
    if not json:
        listing(terminal, found)
    require_well(found)
    if json:
        terminal.answer(checks=found)


def listing(terminal: "Terminal", checks: Sequence["Check"]) -> None:
    """Prints a row per hop, and what to look at where it is not well."""
    rows = [(check.hop, check.state, cells.literal(check.found)) for check in checks]
    terminal.table(("hop", "state", "found"), rows, styles=STYLES, is_prose=True)
    hints = [(check.hop, check.look_at) for check in checks if check.look_at]
    if hints:
        terminal.line()
        terminal.table(("hop", "look at"), hints, is_prose=True)


def require_well(checks: Sequence["Check"]) -> None:
    """Makes sure that nothing is down and nothing was lost.

    Raises:
        MachineError: Something is, or was; one line names all of it, and the document has the checks.
    """
    kinds = {"down": "down", "lost": "lost on the way"}
    bad = {text: [check.hop for check in checks if check.state == state] for state, text in kinds.items()}
    said = [f"{text}: {', '.join(hops)}" for text, hops in bad.items() if hops]
    if said:
        error = MachineError(f"the stack is not well; {'; '.join(said)}")
        error.document = {"checks": checks}
        raise error
