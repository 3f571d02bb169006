"""Records of orders that do not parse."""

from typing import Final

from spark_app import stream

from ..topics import ORDERS

DEAD_LETTERS: Final = stream.dead_letters([ORDERS])
