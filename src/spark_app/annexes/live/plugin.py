"""What this annex adds: the pages of `spark-app observe --live` and `spark-app report --follow`."""

from typing import Final

from spark_app.annexes.live import following
from spark_app.commands.plugins import LivePages

ADDS: Final = (LivePages(following.command, following.require_local, following.log, following.as_of_now),)
