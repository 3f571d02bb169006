"""The identity of a run, and its outcome."""

from dataclasses import dataclass
from pathlib import Path

from spark_app.errors import InputError, QualityGateError
from spark_app.vocabulary import names
from spark_app.vocabulary.names import Outcome


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What is known about a run before it starts; its folder exists.

    Attributes:
        run_id: The name of the folder of the run.
        invocation_id: The process that the run is part of.
        pipeline: The pipeline of the run.
        slice: The key of the slice that the run is about: a day, a model version; "" for none.
        folder: Where the files of the run are written.
        application: The name of the Spark application.
    """

    run_id: str
    invocation_id: str
    pipeline: str
    slice: str
    folder: Path
    application: str

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes that every span and log record of the run carries."""
        attributes = {
            names.PIPELINE.name: self.pipeline,
            names.RUN_ID.name: self.run_id,
            names.INVOCATION_ID.name: self.invocation_id,
        }
        return {**attributes, names.RUN_SLICE.name: self.slice} if self.slice else attributes


def outcome_of(error: BaseException | None) -> Outcome:
    """How a run ended, by the exception that left it."""
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
