"""What a program of this folder leaves behind: its log, and the spans of it."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.spans import SparkSpan
from tests.eventlogs import hard, walking

PATIENCE_SECONDS: Final = 400


@dataclass(frozen=True)
class Log:
    """What a program has left."""

    app: Application
    spans: list[SparkSpan]

    def below(self, span_id: int) -> Iterator[SparkSpan]:
        """All spans below one, each after its parent."""
        for span in self.spans:
            if span.ids.parent_id == span_id:
                yield span
                yield from self.below(span.ids.span_id)

    def of(self, case: str, kind: str) -> list[SparkSpan]:
        """The spans of a kind that belong to a case."""
        return [span for span in self.below(hard.span_id(case)) if span.kind.prefix == kind]

    def batches(self, name: str) -> list[SparkSpan]:
        """The batches of a streaming query."""
        return [span for span in self.spans if span.name == f"batch {name}"]


def left_by(program: str, folder: Path, *options: str) -> Log:
    """Runs a program to its end."""
    command = [sys.executable, "-m", f"tests.eventlogs.{program}", str(folder), *options]
    said = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert said.returncode == 0, said.stderr
    return Log(*walking.read(next((folder / "logs").iterdir())))
