"""Why the stack is not started, or not up."""

from __future__ import annotations

USAGE_OR_MACHINE = 2


class StartError(Exception):
    """What is in the way, in lines for the reader, and the exit code that the script ends with.

    Attributes:
        exit_code: 2 when the machine or the command line is in the way, 1 when something that was started failed.
    """

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
