"""What this annex adds: `spark-app lineage`."""

from typing import Final

from spark_app.annexes.lineage.command import lineage
from spark_app.commands.plugins import Command

ADDS: Final = (Command(lineage, extra="lineage"),)
