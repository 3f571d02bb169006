"""Mistakes in the functions of a project, found by calling each with frames without rows.

The schemas of all that functions read and return are declared, so Spark can plan what they do before anything is read
or written. A function may act on its rows (`collect`, `count`, `pivot`); what it then makes of none says nothing about
what it makes of some, so that its failure is a remark, and no mistake.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_app import project
from spark_app.declarations.answers import Answers
from spark_app.declarations.daily_pipeline import DailyPipeline
from spark_app.declarations.model_pipeline import ModelPipeline
from spark_app.declarations.own_pipeline import OwnPipeline
from spark_app.declarations.query import DeclaredStream
from spark_app.declarations.trials import EmptyInputs, Trial
from spark_app.engine.code_location import CodeLocation, DeclarationError, nearest
from spark_app.engine.dead_letters import DeadLetters
from spark_app.engine.progress import ProgressListener
from spark_app.execution import pipelines
from spark_app.execution.run import load_jobs
from spark_app.settings import Settings
from spark_app.spark import jars, session
from spark_app.spark.asked_rows import asked_rows
from spark_app.spark.java_runtime import require_java
from spark_app.telemetry.exceptions import message_of
from spark_app.warehouse.tables import Table

ELSEWHERE: Final = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")
"""Conditions of Spark that are about what is stored, which may be elsewhere, and not about the program."""
EMBEDDED: Final = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
KINDS: Final[Mapping[type, str]] = {
    DailyPipeline: "daily tables",
    DeclaredStream: "query",
    ModelPipeline: "model",
    Answers: "query",
    DeadLetters: "query",
    OwnPipeline: "own",
}
OF_FRAMES: Final = re.compile(r"'?(?:DataFrame|Column|GroupedData)'?")
WRONG_CALL: Final = re.compile(r"\(\) (?:missing|takes|got an unexpected|got multiple)")
"""What Python says where a function is called otherwise than it is declared."""
PLAN: Final = re.compile(r";(?: line \d+ pos \d+;)?\s*\n|\s*SQLSTATE: \w+|\n\nJVM stacktrace")
"""Where the message of an exception of Spark ends, and a plan or a stack begins."""
MAX_CHARACTERS: Final = 400


@dataclass(frozen=True)
class Finding:
    """What is said of a function.

    Attributes:
        pipeline: The name of its pipeline.
        function: Its name.
        kind: A mistake fails whatever the data; a note is what could not be checked without data.
        message: One line, with file and line.
    """

    pipeline: str
    function: str
    kind: Literal["mistake", "note"]
    message: str


@dataclass(frozen=True)
class Module:
    """A module of a project.

    Attributes:
        name: `etl.daily_sales`.
        kind: What it is: a daily pipeline, a query, a model, or one that does all itself.
        makes: The names of what it writes.
        reads: The names of what it reads.
    """

    name: str
    kind: str
    makes: str
    reads: str


@dataclass(frozen=True)
class Checked:
    """What was looked at, and what was found.

    Attributes:
        modules: The modules of the project.
        findings: What is said of their functions.
    """

    modules: Sequence[Module]
    findings: Sequence[Finding]

    @property
    def mistakes(self) -> list[Finding]:
        """What fails whatever the data."""
        return [each for each in self.findings if each.kind == "mistake"]

    @property
    def notes(self) -> list[Finding]:
        """What could not be checked without data."""
        return [each for each in self.findings if each.kind == "note"]


def of_project(settings: Settings, *, listener: ProgressListener) -> Checked:
    """The current project, in a Spark of one core that is embedded in this process.

    Raises:
        ConfigError: A declaration or a configuration cannot be read.
    """
    jobs = [job for package in pipelines.PACKAGES for job in load_jobs(settings, package)]
    loaded = {job.name: job.pipeline for job in jobs}
    tables = {table.name: table for table in pipelines.declared_tables()}
    with embedded(settings, listener=listener) as spark:
        return Checked([_module(*each) for each in loaded.items()], findings(spark, loaded, tables, settings))


@contextmanager
def embedded(settings: Settings, *, listener: ProgressListener) -> Iterator[SparkSession]:
    """A session of this process alone, whatever master is configured."""
    require_java()
    jars.ensure_jars(note=listener.note)
    log_file = session.log_file_of(settings, "check")
    spark = session.start(settings, name="spark-app check", log_file=log_file, extra=EMBEDDED)
    try:
        yield spark
    finally:
        session.stop(spark)


def _module(name: str, pipeline: Any) -> Module:
    made = [*(table.name for table in pipeline.WRITES), *getattr(pipeline, "SENDS", ())]
    read = [*getattr(pipeline, "SOURCES", ()), *getattr(pipeline, "TOPICS", ()), *pipeline.READS]
    return Module(name, KINDS.get(type(pipeline), "own"), ", ".join(made), ", ".join(read))


def findings(
    spark: SparkSession, loaded: Mapping[str, Any], tables: Mapping[str, Table], settings: Settings
) -> list[Finding]:
    """What is wrong with the functions of pipelines; empty where nothing is.

    Args:
        spark: A session; the functions get one of their own in it, so that what they set is gone afterwards.
        loaded: The pipelines by name.
        tables: The tables of the project by name.
        settings: The configuration.
    """
    with _own_session(spark) as session:
        empty = EmptyInputs(session, tables, settings)
        found = [_finding(name, trial) for name, trial in _trials(loaded, empty)]
    return [each for each in found if each is not None]


def _trials(loaded: Mapping[str, Any], empty: EmptyInputs) -> Iterator[tuple[str, Trial]]:
    for name, pipeline in loaded.items():
        if hasattr(pipeline, "trials"):
            yield from ((name, trial) for trial in pipeline.trials(empty))


@contextmanager
def _own_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with settings and views of its own, which functions find as the active one."""
    own, sessions = spark.newSession(), spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    sessions.setActiveSession(own._jsparkSession)
    try:
        yield own
    finally:
        sessions.setActiveSession(spark._jsparkSession)


def _finding(pipeline: str, trial: Trial) -> Finding | None:
    with asked_rows() as asked:
        try:
            trial.call()
        except Exception as error:  # noqa: BLE001 - a function of a project may raise anything
            kind: Literal["mistake", "note"] = "mistake" if _is_mistake(error) and not asked.happened else "note"
            return Finding(pipeline, trial.function, kind, _line(error, trial, kind))
    return None


def _is_mistake(error: Exception) -> bool:
    """Whether an exception is about the program, whatever the data."""
    match error:
        case DeclarationError():
            return True
        case AnalysisException():
            return not (error.getCondition() or "").startswith(ELSEWHERE)
        case PySparkException():
            return isinstance(error, AttributeError | TypeError | ValueError)
        case AttributeError():
            return isinstance(error.obj, ModuleType) or type(error.obj).__module__.startswith("pyspark.")
        case TypeError():
            return bool(OF_FRAMES.search(str(error)) or WRONG_CALL.search(str(error)))
        case NameError():
            return not isinstance(error, UnboundLocalError)
    return False


def _line(error: Exception, trial: Trial, kind: str) -> str:
    """One line about what a function raised, with file and line."""
    if isinstance(error, DeclarationError):
        return str(error)
    location = CodeLocation.of_error(error, within=_package(), otherwise=trial.location)
    text = _meaning(error) if kind == "mistake" else f"not checked without data: {_said(error)}"
    return str(location.error(f"{trial.function}: {text}"))


def _package() -> Path:
    found = project.required()
    return found.folder.joinpath(*found.package.split("."))


def _meaning(error: Exception) -> str:
    """What is wrong, with the nearest right name where a name is."""
    if isinstance(error, AnalysisException) and (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
        given = error.getMessageParameters() or {}
        names = [name.strip().strip("`") for name in given.get("proposal", "").split(",") if name.strip()]
        return no_column(given.get("objectName", "").replace("`", ""), names)
    if isinstance(error, AttributeError) and (frame := _asked(error)) is not None:
        return no_column(error.name or str(error).partition("`")[2].partition("`")[0], frame.columns)
    return _said(error)


def no_column(name: str, known: Sequence[str]) -> str:
    """What is said of a column that is not there."""
    return f"there is no column {name}: {nearest(name, known)}"


def _asked(error: AttributeError) -> DataFrame | None:
    """The frame that was asked for a column as an attribute that it does not have."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_name == "__getattr__" and isinstance(
            asked := trace.tb_frame.f_locals.get("self"), DataFrame
        ):
            return asked
        trace = trace.tb_next
    return None


def _said(error: Exception) -> str:
    """What an exception says, on one line: of Spark's without the plan, of others with their class."""
    if isinstance(error, PySparkException):
        return " ".join(PLAN.split(message_of(error), maxsplit=1)[0].split())[:MAX_CHARACTERS]
    return f"{type(error).__name__}: {' '.join(message_of(error).split())}"[:MAX_CHARACTERS]
