"""What this annex adds: `spark-app tune`, and what `spark-app compare` says of its forecasts."""

from typing import Final

from spark_app.annexes.tune import proposing
from spark_app.annexes.tune.command import tune
from spark_app.commands.plugins import Command, Forecasts

ADDS: Final = (Command(tune, takes_program=True), Forecasts(proposing.decided))
