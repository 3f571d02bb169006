"""The rows of the table of docs/incidents.md: `python -m spark_app.annexes.incidents.page` prints them."""

from spark_app.annexes.incidents.catalogue import incidents
from spark_app.annexes.incidents.incident import BY_ALERT, Incident
from spark_app.commands.terminal import Terminal


def rows() -> list[list[str]]:
    """A row per incident: name, what it does, alert, panel, what names the cause, seconds within which all is seen."""
    return [
        [
            f"`{name}`",
            each.does,
            f"[{each.alert.name}](runbook.md#{each.alert.name.lower()})",
            f"*{each.panel.title}* in `{each.panel.dashboard}`",
            _cause(each),
            f"{each.seconds:.0f}",
        ]
        for name, each in incidents().items()
    ]


def _cause(incident: Incident) -> str:
    if incident.cause is None:
        return BY_ALERT
    name = incident.cause.name
    return f"[`{name}`](diagnoses.md#{name})" if incident.cause.is_finding else f"`{name}` in a label of the alert"


if __name__ == "__main__":
    terminal = Terminal()
    for row in rows():
        terminal.line(f"| {' | '.join(row)} |")
