"""A listener that keeps what it hears of runs."""


class Watching:
    """Keeps the notes, and nothing else."""

    def __init__(self) -> None:
        """No notes yet."""
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Keeps it."""
        self.notes.append(text)

    def step_started(self, *_: object) -> None:
        """Nothing to keep."""

    def step_ended(self, *_: object) -> None:
        """Nothing to keep."""

    def step_progress(self, *_: object) -> None:
        """Nothing to keep."""

    def queries(self, *_: object) -> None:
        """Nothing to keep."""
