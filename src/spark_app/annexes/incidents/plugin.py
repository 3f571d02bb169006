"""What this annex adds: `spark-app incident`, which the first page of the stack offers to try."""

from typing import Final

from spark_app.annexes.incidents.catalogue import incidents
from spark_app.annexes.incidents.command import incident
from spark_app.commands.plugins import Command, Examples


def examples() -> dict[str, str]:
    """The command that plants each incident, with what that does."""
    return {f"spark-app incident {name}": each.does for name, each in incidents().items()}


ADDS: Final = (Command(incident), Examples(examples))
