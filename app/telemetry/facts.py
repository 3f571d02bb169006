"""What identifies a run, and how it ended."""

import datetime
from dataclasses import dataclass
from pathlib import Path

from app.errors import InputError, QualityGateError
from app.telemetry import names
from app.telemetry.names import Outcome


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known about a run before it starts; its folder exists."""

    run_id: str
    invocation_id: str
    pipeline: str
    date: datetime.date
    folder: Path
    application: str

    @property
    def identity(self) -> dict[str, str]:
        """The attributes that every span and log record of the run carries."""
        return {
            names.PIPELINE.name: self.pipeline,
            names.RUN_ID.name: self.run_id,
            names.INVOCATION_ID.name: self.invocation_id,
            names.RUN_DATE.name: self.date.isoformat(),
        }


def outcome_of(error: BaseException | None) -> Outcome:
    """How a run ended, told by the exception that left it."""
    match error:
        case None:
            return "succeeded"
        case QualityGateError():
            return "rejected"
        case InputError():
            return "missing_input"
        case KeyboardInterrupt() | SystemExit():
            return "interrupted"
        case _:
            return "failed"
