"""The pipelines of a package, found by looking into it: one module is one pipeline."""

import ast
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from pyspark import cloudpickle
from pyspark.errors import PySparkRuntimeError

from spark_app import project
from spark_app.declarations.answers import Answers
from spark_app.declarations.daily_pipeline import DailyPipeline
from spark_app.declarations.dead_letters import DeadLetters
from spark_app.declarations.declaration import Declared
from spark_app.declarations.model_pipeline import DeclaredFeatures, DeclaredModel, ModelPipeline
from spark_app.declarations.own_pipeline import own_pipeline
from spark_app.declarations.pipeline import Pipeline, ordered
from spark_app.declarations.query import DeclaredQuery, DeclaredStream
from spark_app.engine import udf_types
from spark_app.engine.code_location import CodeLocation, nearest_attribute
from spark_app.engine.topics import Topic
from spark_app.errors import SparkAppError, UsageError
from spark_app.models import registry
from spark_app.project import Project
from spark_app.settings import Settings
from spark_app.warehouse.origin import Origin
from spark_app.warehouse.source_files import origin
from spark_app.warehouse.tables import QUARANTINE, Table

PACKAGES: Final = ("etl", "streaming", "ml")
WORK: Final = ("run", "query")
"""The functions of a module that does all itself."""
Declaration = Declared | DeclaredQuery | DeclaredModel | DeclaredFeatures | Answers | DeadLetters


def names(package: str) -> list[str]:
    """The names of the pipelines of a package, `etl.customers`; no pipeline is imported."""
    modules = pkgutil.iter_modules([str(project.required().folder_of(package))])
    return sorted(f"{package}.{module.name}" for module in modules if not module.name.startswith("_"))


def qualified(package: str, chosen: Sequence[str]) -> list[str]:
    """The full names of the chosen pipelines of a package, given as `daily_sales` or `etl.daily_sales`.

    `daily_sales+` also chooses those that read what it writes, and so on.

    Raises:
        UsageError: There is no such pipeline.
    """
    known = names(package)
    full = list[str]()
    for given in chosen:
        short = given.removesuffix("+")
        name = short if short.startswith(f"{package}.") else f"{package}.{short}"
        if name not in known:
            folder = f"{project.required().package}/{package}"
            raise UsageError(f"no pipeline {short!r} in {folder}; the pipelines are {', '.join(known)}")
        full += downstream(load(package), name) if given.endswith("+") else [name]
    for name in set(full).intersection(helpers()):
        raise UsageError(f"{name} declares nothing that runs: its functions are for other modules")
    return list(dict.fromkeys(full))


def downstream(loaded: Mapping[str, Pipeline], name: str) -> list[str]:
    """A pipeline and those that read what it writes, and so on; all are given after those whose tables they read."""
    found, written = {name}, {table.name for table in loaded[name].writes}
    for other, pipeline in loaded.items():
        if not written.isdisjoint(pipeline.reads):
            found.add(other)
            written |= {table.name for table in pipeline.writes}
    return [other for other in loaded if other in found]


def load(package: str) -> dict[str, Pipeline]:
    """The pipelines of a package by name, each after those that write what it reads.

    Raises:
        DeclarationError: A declaration is wrong, or reads a table that no pipeline writes.
        UsageError: Pipelines read from each other in a circle, or two write the same table.
    """
    return _checked(_loaded(), package)


def load_all() -> dict[str, Pipeline]:
    """The pipelines of all packages by name.

    Raises:
        DeclarationError: A declaration is wrong, or reads a table that no pipeline writes.
        UsageError: Pipelines read from each other in a circle, or two write the same table.
    """
    loaded = _loaded()
    return {name: each for package in PACKAGES for name, each in _checked(loaded, package).items()}


def _loaded() -> dict[str, dict[str, Pipeline]]:
    """The pipelines of each package in the order of their names.

    Raises:
        DeclarationError: A module cannot be imported, or declares something that cannot be.
    """
    found, known, helping = project.required(), topics(), helpers()
    return {
        package: {
            name: of_module(name, _imported(found, name), known) for name in names(package) if name not in helping
        }
        for package in PACKAGES
    }


def helpers() -> set[str]:
    """The modules of pipelines that declare nothing, and that another module of the project imports.

    Raises:
        DeclarationError: A module cannot be imported.
    """
    found = project.required()
    silent = [name for package in PACKAGES for name in names(package) if not _declares(_imported(found, name))]
    imported = set[str]().union(*map(_imports, found.source_folder.rglob("*.py"))) if silent else set[str]()
    return {name for name in silent if name.rpartition(".")[2] in imported}


def _declares(module: ModuleType) -> bool:
    values = vars(module).values()
    return any(isinstance(each, Declaration) for each in values) or any(
        callable(vars(module).get(work)) for work in WORK
    )


def _imports(file: Path) -> set[str]:
    """The last words of the modules that a file imports, and the names that it imports from them."""
    found = set[str]()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {each.name.rpartition(".")[2] for each in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.rpartition(".")[2])
    return found


def _imported(found: Project, name: str) -> ModuleType:
    """A module of a project, whose functions Spark's workers get by value: they need not have the project.

    Raises:
        DeclarationError: It says what Python cannot read, or imports or calls what is not there.
    """
    udf_types.read_without_spark()
    try:
        module = found.load(name)
    except SparkAppError:
        raise
    except SyntaxError as error:
        raise CodeLocation(error.filename or name, error.lineno or 1).error(
            f"Python cannot read this: {error.msg}"
        ) from error
    except Exception as error:
        raise CodeLocation.of_error(error, within=found.source_folder).error(_while_loading(error)) from error
    cloudpickle.register_pickle_by_value(sys.modules[found.package])
    return module


def _while_loading(error: Exception) -> str:
    """What is said of an exception of a module that is loaded."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return f"{text}: {nearest_attribute(error)}"
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, AssertionError | PySparkRuntimeError) and "/pyspark/" in frames[-1].filename:
        return (
            "this needs Spark, which starts after the modules are loaded: move it into the function that uses it "
            f"({frames[-1].name} in pyspark)"
        )
    return text


def _checked(loaded: Mapping[str, Mapping[str, Pipeline]], package: str) -> dict[str, Pipeline]:
    """The pipelines of a package, each after those that write what it reads.

    Raises:
        DeclarationError: No pipeline writes a table that a declared one reads.
        UsageError: Pipelines read from each other in a circle, or two write the same table.
    """
    written = [table.name for pipelines in loaded.values() for each in pipelines.values() for table in each.writes]
    for pipeline in loaded[package].values():
        pipeline.require_known(written)
    return {name: loaded[package][name] for name in in_order(loaded[package])}


def of_module(name: str, module: ModuleType, topics: Sequence[Topic]) -> Pipeline:
    """The pipeline that the declarations of a module make, or that the module writes itself.

    Raises:
        DeclarationError: It declares something that cannot be.
    """
    own = [each for each in vars(module).values() if isinstance(each, Declaration) and _is_of(module, each)]
    days = [each for each in own if isinstance(each, Declared)]
    others = [each for each in own if not isinstance(each, Declared | DeclaredFeatures)]
    if len(others) > 1 or (days and others):
        first = [*days, *others][0]
        shown = first.function.__name__ if isinstance(first, DeclaredModel) else first.name
        raise others[-1].location.error(f"{name} declares {shown} already: one module declares one")
    if days:
        return DailyPipeline(name, days)
    match others:
        case [DeclaredQuery() as query]:
            return DeclaredStream(name, query, topics)
        case [DeclaredModel() as model]:
            return ModelPipeline(name, model)
        case [Pipeline() as ready]:
            return ready
    return own_pipeline(name, module)


def _is_of(module: ModuleType, declared: Declaration) -> bool:
    """Whether a module declares what it names, and does not import it."""
    if isinstance(declared, Pipeline):
        return declared.location.file == module.__file__
    return declared.function.__module__ == module.__name__


def in_order(pipelines: Mapping[str, Pipeline]) -> list[str]:
    """The names of pipelines, each after those that write what it reads; else in the order of their names.

    Raises:
        UsageError: Pipelines read from each other in a circle, or two write the same table.
    """
    writers: dict[str, str] = {}
    for name, pipeline in pipelines.items():
        for table in pipeline.writes:
            if table.name in writers:
                raise UsageError(f"{writers[table.name]} and {name} both write the table {table.name}")
            writers[table.name] = name

    def circle(found: Sequence[str]) -> Exception:
        return UsageError(f"pipelines read from each other in a circle: {' -> '.join(found)}")

    return ordered({name: each.reads for name, each in pipelines.items()}, writers, circle)


def needed(pipelines: Mapping[str, Pipeline], table: str) -> list[str]:
    """The names of the pipelines that a table needs: its writer, after those that write what it reads, and so on."""
    writers = {written.name: name for name, pipeline in pipelines.items() for written in pipeline.writes}
    tables, found = [table], set[str]()
    while tables:
        name = writers.get(tables.pop())
        if name is not None and name not in found:
            found.add(name)
            tables += pipelines[name].reads
    return [name for name in in_order(pipelines) if name in found]


def sources(pipelines: Iterable[Pipeline]) -> list[str]:
    """The sources whose raw rows pipelines read."""
    return [source for pipeline in pipelines for source in pipeline.sources]


def origins(settings: Settings, pipelines: Iterable[Pipeline]) -> dict[str, Origin]:
    """Where the rows of the sources come from that pipelines read."""
    return {
        source: origin(settings, source, pipeline.origins.get(source))
        for pipeline in pipelines
        for source in pipeline.sources
    }


def topics() -> list[Topic]:
    """The topics that the module `topics` of the project declares; none if it has no such module.

    Raises:
        DeclarationError: The module cannot be imported, or declares something that cannot be.
    """
    found = project.required()
    if not found.folder_of("topics").with_suffix(".py").is_file():
        return []
    return [value for value in vars(_imported(found, "topics")).values() if isinstance(value, Topic)]


def declared_tables() -> list[Table]:
    """The tables that all pipelines write, and those of the model registry."""
    loaded = _loaded()
    written = [table for package in PACKAGES for each in _checked(loaded, package).values() for table in each.writes]
    return [*written, *registry.TABLES]


def require_table(name: str) -> None:
    """Checks the name of a table before Spark starts.

    Raises:
        UsageError: No pipeline writes a table of this name.
    """
    known = [*(table.name for table in declared_tables()), QUARANTINE]
    if name not in known:
        raise UsageError(f"no table {name!r}; the tables are {', '.join(known)}")
