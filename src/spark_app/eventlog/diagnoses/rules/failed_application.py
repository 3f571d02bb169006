"""The application failed or was killed."""

from pathlib import PurePosixPath
from typing import Final

from spark_app.eventlog.diagnoses.excerpts import error
from spark_app.eventlog.diagnoses.failures import failure_of
from spark_app.eventlog.diagnoses.query import query_name
from spark_app.eventlog.diagnoses.rule import Alert, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.outcome import BAD, Ending, ending_of
from spark_app.eventlog.parse.events import LogRecord
from spark_app.telemetry.python_logs import UNCAUGHT

_READ_ERROR: Final = "Read the error below the title of the report: of a Python function it ends with the failing line."
_READ_OUTPUT: Final = "The log has no error of Spark's: read the last lines of what the program printed."
_WHO_KILLED: Final = (
    "Find what ended it: a time limit of its scheduler, the cluster manager, a person, or the kernel for lack of "
    "memory (SIGKILL; see the log of the host, and lower spark.driver.memory or give the host more)."
)


@rule(
    alert=Alert(
        "SparkApplicationFailed",
        "In the last hour a run of {application} failed, was killed, or was stopped while it had jobs: nobody got its "
        "result.",
    ),
    comes_first=True,
)
def failed_application(app: Application, _: Thresholds) -> list[Finding]:
    """The application failed or was killed.

    Evidence: its exit code, and the error of its last job, query or batch; without one, the exception that ended its
        Python program, with its line.
    Why: nobody got its result. It is always the first finding.
    Change: what the advice says of the failures that are known (a full disk, a strict cast, a missing JAR, and so on);
        else read the error. Of a killed application, find what ended it.
    Threshold: none. `spark-app observe` knows the exit code (128 plus the number of the signal, if one killed it), and
        whether a log without an end belongs to a process that still runs. From a log alone an application failed if its
        last job, query or batch failed: Spark writes the exit code 0 for a Python program that raised an error, too.
    Cost: not estimated.
    """
    ending = ending_of(app)
    if ending.outcome not in BAD:
        return []
    uncaught = _uncaught(app) if ending.error is None else None
    text = ending.error or (uncaught.exception if uncaught else "")
    failure = failure_of(text)
    usual = _WHO_KILLED if ending.outcome == "killed" else _READ_ERROR if text else _READ_OUTPUT
    code = app.exit_code if app.process_exit_code is None else app.process_exit_code
    return [
        Finding(
            "failed_application",
            "warning",
            f"The application {_verb(ending.text)}{_where(app, ending, uncaught)}{f': {error(text)}' if text else ''}",
            failure.advice if failure else usual,
            {"exit_code": code} if code else {},
            query=ending.query,
            cause=failure.name if failure else "",
        ),
    ]


def _uncaught(app: Application) -> LogRecord | None:
    """The exception that ended the Python program; None where nothing collected it."""
    return next((each for each in reversed(app.log_records) if each.message == UNCAUGHT), None)


def _where(app: Application, ending: Ending, uncaught: LogRecord | None) -> str:
    if uncaught is not None:
        return f"; {PurePosixPath(uncaught.file).name}:{uncaught.line}"
    if ending.error is None:
        return ""
    return "; its last job" if ending.query is None else f"; {query_name(app, ending.query)}"


def _verb(text: str) -> str:
    """`killed by SIGTERM` as a part of a sentence."""
    return f"was {text}" if text.startswith("killed") else text
