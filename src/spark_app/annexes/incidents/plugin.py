"""What this annex adds: `spark-app incident`."""

from typing import Final

from spark_app.annexes.incidents.command import incident
from spark_app.commands.plugins import Command, Plugin

PLUGIN: Final = Plugin(commands=(Command(incident),))
