"""Who hears how a run gets on."""

from typing import Protocol


class ProgressListener(Protocol):
    """Hears how a run gets on; the terminal is one."""

    def note(self, text: str) -> None:
        """One line worth reading."""

    def step_started(self, pipeline: str, slice_key: str, step: str) -> None:
        """A step begins."""

    def step_ended(self, pipeline: str, slice_key: str, step: str, seconds: float, rows: int | None) -> None:
        """A step has succeeded; `rows` is the number of rows it wrote, None if it wrote to no table."""

    def step_progress(self, pipeline: str, slice_key: str, step: str, text: str) -> None:
        """How far a step has come that takes long; may be called from any thread."""
