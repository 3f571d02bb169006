"""Mistakes in the functions of a project, found by calling each with frames without rows.

The schemas of all that functions read and return are declared, so Spark can plan what they do before anything is read
or written. A function may act on its rows (`collect`, `count`, `pivot`); what it then makes of none says nothing about
what it makes of some, so that its failure is a remark, and no mistake.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_app import project
from spark_app.declarations.pipeline import Pipeline
from spark_app.declarations.trials import EmptyInputs, Trial
from spark_app.engine.code_location import CodeLocation, DeclarationError, nearest, nearest_attribute
from spark_app.engine.progress import ProgressListener
from spark_app.execution import checked, pipelines
from spark_app.execution.checked import Notes
from spark_app.settings import Settings, load_pipeline_config, located, read_yaml
from spark_app.spark import embedded, jars
from spark_app.spark.asked_rows import asked_rows
from spark_app.spark.session import StartingJvm
from spark_app.telemetry.exceptions import message_of, summary_of
from spark_app.warehouse.tables import Table

if TYPE_CHECKING:  # it stands on the observer, which `spark-app check` does not need
    from spark_app.execution.application import Application

ELSEWHERE: Final = (
    "DATA_SOURCE_NOT_FOUND",
    "DELTA_",
    "PATH_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
    "UNABLE_TO_INFER_SCHEMA",
)
"""Conditions of Spark that are about what is stored, which may be elsewhere, and not about the program."""
ACTIVE: Final = ("_activeSession", "_instantiatedSession")
"""Where PySpark keeps the session that functions find as the active one, beside the JVM."""
ON_A_STREAM: Final = "Queries with streaming sources must be executed with writeStream"
"""What Spark says where a function asks a stream for its rows, which has none to give."""
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
        kind: What it is: a daily pipeline, a query, a model, one that does all itself, or a helper of others.
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


def load(settings: Settings) -> dict[str, Pipeline]:
    """The pipelines of the project by name, whose configuration can be read, too.

    Raises:
        ConfigError: A module cannot be imported, a declaration is wrong, or a key of a configuration is.
        UsageError: Pipelines read from each other in a circle, or two write the same table.
    """
    loaded = {name: each for package in pipelines.PACKAGES for name, each in pipelines.load(package).items()}
    for name, each in loaded.items():
        load_pipeline_config(name, each.config, settings.config)
    return loaded


def of_project(
    settings: Settings,
    loaded: Mapping[str, Pipeline],
    known: Mapping[str, Notes],
    *,
    listener: ProgressListener,
    jvm: StartingJvm | None,
) -> Checked:
    """The current project, in a Spark of one core that is embedded in this process, if it is not known already.

    Args:
        settings: The configuration.
        loaded: The pipelines by name.
        known: Those without a mistake in the project as it is, with their notes.
        listener: Hears notes.
        jvm: The JVM that was started for it, if one was.
    """
    found = unused(settings, loaded)
    if known.keys() >= loaded.keys():
        found += [Finding(name, function, "note", said) for name in loaded for function, said in known[name]]
    else:
        found += _searched(settings, loaded, listener, jvm)
    helping = [Module(name, "helper", "", "") for name in sorted(pipelines.helpers())]
    return Checked([*[_module(*each) for each in loaded.items()], *helping], found)


def _searched(
    settings: Settings, loaded: Mapping[str, Pipeline], listener: ProgressListener, jvm: StartingJvm | None
) -> list[Finding]:
    tables = {table.name: table for table in pipelines.declared_tables()}
    jars.ensure_jars(note=listener.note)
    with (
        nullcontext(jvm) if jvm else embedded.starting(settings) as own,
        embedded.started(settings, "spark-app check", own) as spark,
    ):
        found = findings(spark, loaded, tables, settings)
    keep(settings, loaded, found)
    return found


def keep(settings: Settings, loaded: Mapping[str, Pipeline], found: Sequence[Finding]) -> None:
    """Notes that pipelines have no mistake, unless one has."""
    if not any(each.kind == "mistake" for each in found):
        said = {name: [(each.function, each.message) for each in found if each.pipeline == name] for name in loaded}
        checked.keep(settings, said)


def unused(settings: Settings, loaded: Mapping[str, Pipeline]) -> list[Finding]:
    """Configuration of the project that is about nothing: a file of no pipeline, a format of no source."""
    own, sources = project.required().config, pipelines.sources(loaded.values())
    if settings.config.resolve() != own:
        return []
    found = list[Finding]()
    for package in pipelines.PACKAGES:
        known = [name.partition(".")[2] for name in loaded if name.startswith(f"{package}.")]
        for file in sorted((own / package).glob("*.yml")):
            if file.stem not in known:
                found.append(_of_file(f"{_shown(file)}: no pipeline {file.stem}: {nearest(file.stem, known)}"))
    app = own / "app.yml"
    raw = read_yaml(app).get("raw") if app.is_file() else None
    origins = [each.origins for each in loaded.values()]
    declared = {source: each.declared for of_pipeline in origins for source, each in of_pipeline.items()}
    named = [(key, source) for key in ("formats", "csv") for source in (raw or {}).get(key) or ()]
    for key, source in named:
        if source not in sources:
            where = _shown(Path(located(app, ["raw", key, source])))
            found.append(_of_file(f"{where}: raw.{key}: no source {source}: {nearest(source, sources)}"))
        elif source in declared:
            where = _shown(Path(located(app, ["raw", key, source])))
            found.append(_of_file(f"{where}: raw.{key}: the rows of {source} are declared in {declared[source]}"))
    return found


def _shown(file: Path) -> Path:
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def _of_file(message: str) -> Finding:
    return Finding("", "", "mistake", message)


def require_no_mistake(application: "Application", loaded: Mapping[str, Pipeline]) -> None:
    """Looks for mistakes before a run, where the project has changed since it was last without any.

    What hinders the search is no failure of the run: it costs a remark.

    Args:
        application: The application, in which nothing has run yet.
        loaded: The pipelines that are about to run, by name.

    Raises:
        DeclarationError: A function fails whatever the data.
    """
    try:
        settings = application.settings
        if checked.without_mistakes(settings).keys() >= loaded.keys():
            return
        found = findings(application.spark, loaded, application.warehouse.tables, settings)
        keep(settings, loaded, found)
    except Exception as error:  # noqa: BLE001 - the run may be right
        application.listener.note(f"functions were not checked before the run: {summary_of(error)}")
        return
    if mistakes := [each.message for each in found if each.kind == "mistake"]:
        others = f"; {len(mistakes) - 1} more: spark-app check" if len(mistakes) > 1 else ""
        raise DeclarationError(f"{mistakes[0]}{others}")


def _module(name: str, pipeline: Pipeline) -> Module:
    made = [*(table.name for table in pipeline.writes), *pipeline.sends]
    read = [*pipeline.sources, *pipeline.topics, *pipeline.reads]
    return Module(name, pipeline.kind, ", ".join(made), ", ".join(read))


def findings(
    spark: SparkSession, loaded: Mapping[str, Pipeline], tables: Mapping[str, Table], settings: Settings
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
        found = [_finding(name, trial) for name, each in loaded.items() for trial in each.trials(empty)]
    return [each for each in found if each is not None]


@contextmanager
def _own_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with settings and views of its own, which functions find as the active one."""
    own, sessions = spark.newSession(), spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    before = {name: getattr(SparkSession, name) for name in ACTIVE}
    sessions.setActiveSession(own._jsparkSession)
    try:
        for name in ACTIVE:
            setattr(SparkSession, name, own)
        yield own
    finally:
        for name, value in before.items():
            setattr(SparkSession, name, value)
        sessions.setActiveSession(spark._jsparkSession)


def _finding(pipeline: str, trial: Trial) -> Finding | None:
    with asked_rows() as asked:
        try:
            trial.call()
        except Exception as error:  # noqa: BLE001 - a function of a project may raise anything
            is_of_rows = asked.happened and ON_A_STREAM not in message_of(error)
            kind: Literal["mistake", "note"] = "mistake" if _is_mistake(error) and not is_of_rows else "note"
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
    location = CodeLocation.of_error(error, within=project.required().source_folder, otherwise=trial.location)
    text = _meaning(error) if kind == "mistake" else f"not checked without data: {_said(error)}"
    return str(location.error(f"{trial.function}: {text}"))


def _meaning(error: Exception) -> str:
    """What is wrong, with the nearest right name where a name is."""
    if isinstance(error, AnalysisException) and (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
        given = error.getMessageParameters() or {}
        names = [name.strip().strip("`") for name in given.get("proposal", "").split(",") if name.strip()]
        return no_column(given.get("objectName", "").replace("`", ""), names)
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return f"{_said(error)}: {nearest_attribute(error)}"
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
