"""A listener that keeps what it hears of runs."""

from collections.abc import Sequence

from spark_app.runs.stream_status import StreamStatus


class Watching:
    """Keeps the notes and the last statuses of queries, and nothing else."""

    def __init__(self) -> None:
        """No notes yet."""
        self.notes: list[str] = []
        self.statuses: Sequence[StreamStatus] = ()

    def note(self, text: str) -> None:
        """Keeps it."""
        self.notes.append(text)

    def step_started(self, *_: object) -> None:
        """Nothing to keep."""

    def step_ended(self, *_: object) -> None:
        """Nothing to keep."""

    def step_progress(self, *_: object) -> None:
        """Nothing to keep."""

    def queries(self, statuses: Sequence[StreamStatus]) -> None:
        """Keeps the last ones."""
        self.statuses = statuses
