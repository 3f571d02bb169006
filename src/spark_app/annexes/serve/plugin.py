"""What this annex adds: `spark-app serve`."""

from typing import Final

from spark_app.annexes.serve.command import serve
from spark_app.commands.plugins import Command

ADDS: Final = (Command(serve),)
