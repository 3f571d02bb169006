"""Records that no query can read."""

from typing import Final

from app.topics import INCOMING
from spark_app import stream

DEAD_LETTERS: Final = stream.dead_letters(INCOMING)
