"""JSON Lines files of generated records, in a landing folder: one folder per topic, one file per interval."""

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from app.demo.event_records import TOPICS, Record
from spark_app.local_files import write_atomic

MOST_FILES: Final = 1_800
"""Generated files that each topic keeps: an hour at one file in two seconds.

The oldest are deleted while new ones are written. Age does not count: a query that was stopped for a day still finds
the files of the batch that it had begun.
"""
_GENERATED: Final = re.compile(r"\d{8}T\d{9}-\d+-\d{8}\.jsonl")


class Landing:
    """Drops files that appear whole or not at all; their names are in the order of their records."""

    def __init__(self, folder: Path, stream: str) -> None:
        """Files of a stream; `stream` is the name of its plan."""
        self.folder, self._stream = folder, stream
        self._files = 0
        self._kept: dict[str, deque[Path]] = {}

    def send(self, records: Sequence[Record]) -> None:
        """Writes one file per topic.

        Raises:
            OSError: A file cannot be written; the same records can be sent again, and no file is written twice.
        """
        values = defaultdict(list)
        for record in records:
            values[record.topic].append(record.value)
        for topic, lines in values.items():
            file = self.folder / topic / f"{self._stream}-{self._files:08}.jsonl"
            if not file.exists():
                write_atomic(file, b"\n".join([*lines, b""]))
                self._keep(topic, file)
        self._files += 1

    def close(self) -> None:
        """Nothing to close: all files are written."""

    def _keep(self, topic: str, file: Path) -> None:
        if topic not in self._kept:
            self._kept[topic] = deque(generated_files(file.parent)[:-1])
        self._kept[topic].append(file)
        while len(self._kept[topic]) > MOST_FILES:
            self._kept[topic].popleft().unlink(missing_ok=True)


def prepare(folder: Path) -> None:
    """Creates the folder of each topic, which a query needs before the first file comes.

    Raises:
        OSError: A folder cannot be created.
    """
    for topic in TOPICS:
        (folder / topic).mkdir(parents=True, exist_ok=True)


def generated_files(topic: Path) -> list[Path]:
    """The generated files of a topic, oldest first; files of other origin have other names."""
    return sorted(path for path in topic.glob("*.jsonl") if _GENERATED.fullmatch(path.name))
