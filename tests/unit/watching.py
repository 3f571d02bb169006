"""Somebody who is told how runs get on."""


class Watching:
    """Keeps the notes, and nothing else."""

    def __init__(self) -> None:
        """Nothing was told yet."""
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Keeps it."""
        self.notes.append(text)

    def step_started(self, *_: object) -> None:
        """Nothing to keep."""

    def step_ended(self, *_: object) -> None:
        """Nothing to keep."""
