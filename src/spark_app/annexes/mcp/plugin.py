"""What this annex adds: `spark-app mcp`."""

from typing import Final

from spark_app.annexes.mcp.command import mcp
from spark_app.commands.plugins import Command

ADDS: Final = (Command(mcp, extra="mcp"),)
