"""Where a project declares something, and what is wrong there."""

import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from spark_app.engine import ddl
from spark_app.errors import ConfigError

INSTANTS: Final = (TimestampType, TimestampNTZType)
UNSTORED: Final = frozenset(" ,;{}()\n\t=")
"""Characters that Delta stores in no name of a column."""


class DeclarationError(ConfigError):
    """A declaration of a project is wrong: one line with file and line, what is wrong, and the nearest right name."""


@dataclass(frozen=True)
class CodeLocation:
    """Where something is declared."""

    file: str
    line: int

    @classmethod
    def of_caller(cls, depth: int = 2) -> "CodeLocation":
        """The line that called the function that asks."""
        frame = sys._getframe(depth)  # inspect.stack reads the lines of all frames: 9 ms for each declaration
        return cls(frame.f_code.co_filename, frame.f_lineno)

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "CodeLocation":
        """The line of a function's name."""
        code = function.__code__
        lines, first = inspect.getsourcelines(function)
        offset = next((number for number, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)
        return cls(code.co_filename, first + offset)

    @classmethod
    def of_error(cls, error: BaseException, *, within: Path, otherwise: "CodeLocation | None" = None) -> "CodeLocation":
        """The last line of the files in a folder that an exception came through, or another one without such a line."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).is_relative_to(within)]
        return cls(own[-1].filename, own[-1].lineno or 1) if own else otherwise or cls(str(within), 1)

    def error(self, problem: str) -> DeclarationError:
        """A mistake in this line."""
        return DeclarationError(f"{self.shown}: {' '.join(problem.split())}")

    @property
    def shown(self) -> str:
        """File and line, the file from the current folder on if it is below it."""
        file = Path(self.file)
        return f"{file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file}:{self.line}"

    def require(self, columns: Iterable[str], known: Sequence[str], owner: str = "the schema") -> None:
        """Checks that columns that are named here are there.

        Raises:
            DeclarationError: What should have one does not.
        """
        for column in columns:
            if column not in known:
                raise self.error(f"{owner} has no column {column}: {nearest(column, known)}")

    def require_frame(self, function: str, returned: object) -> DataFrame:
        """What a function that is declared here returns, which must be rows.

        Raises:
            DeclarationError: It is anything else.
        """
        if isinstance(returned, DataFrame):
            return returned
        what = "nothing" if returned is None else f"a {type(returned).__name__}"
        raise self.error(f"{function} returns {what}: end it with `return` and the DataFrame of its rows")

    def require_returned(self, function: str, returned: Sequence[str], columns: Sequence[str], why: str = "") -> None:
        """Checks that a function that is declared here returns columns.

        Raises:
            DeclarationError: It lacks some.
        """
        missing = [column for column in columns if column not in returned]
        if missing:
            raise self.error(
                f"{function} returns no column {', '.join(missing)}{why}; it returns {', '.join(returned)}"
            )

    def require_types(self, function: str, rows: DataFrame, schema: StructType) -> DataFrame:
        """The rows with the types of a schema, as far as Spark stores the ones as the others without a loss.

        Raises:
            DeclarationError: A function that is declared here returns a column of a type that is not stored so; Spark
                would store an instant as a date, without its time.
        """
        kinds = {field.name: field.dataType for field in rows.schema}
        for field in schema:
            if isinstance(field.dataType, DateType) and isinstance(kinds.get(field.name), INSTANTS):
                raise self._of_type(function, field.name, kinds[field.name].simpleString(), "date")
        try:
            return rows.to(schema)
        except AnalysisException as error:
            given = error.getMessageParameters() or {}
            if not {"name", "type", "expectedType"} <= given.keys():
                raise
            texts = (given[key].strip('"`') for key in ("name", "type", "expectedType"))
            raise self._of_type(function, *texts) from error

    def _of_type(self, function: str, name: str, kind: str, expected: str) -> DeclarationError:
        return self.error(
            f"{function} returns {name} as {kind.lower()}, and declares it as {expected.lower()}: cast it, or "
            "declare what it is"
        )


def columns_of(names: str | Sequence[str]) -> tuple[str, ...]:
    """The names of columns, given as one or as several."""
    return (names,) if isinstance(names, str) else tuple(names)


def nearest(name: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, else all of them."""
    near = get_close_matches(name, known, n=1)
    return f"do you mean {near[0]}?" if near else f"there are {', '.join(known) or 'none'}"


def nearest_attribute(error: AttributeError) -> str:
    """The end of a message about a name that a module does not have: the nearest that it has, else those of its own."""
    name, values = error.name or "", {each: value for each, value in vars(error.obj).items() if each[0] != "_"}
    module = vars(error.obj).get("__name__")
    own = [each for each, value in values.items() if getattr(value, "__module__", None) == module]
    return nearest(name, [*values] if get_close_matches(name, values) or not own else own)


def parsed(text: str | StructType, location: CodeLocation) -> StructType:
    """A schema, as Spark writes it or as Spark's type.

    Raises:
        DeclarationError: It cannot be read.
    """
    if isinstance(text, StructType):
        return text
    try:
        return ddl.schema(text)
    except ValueError as error:
        raise location.error(f"schema: {error}") from error


def stored(text: str | StructType, location: CodeLocation) -> StructType:
    """The schema of a table.

    Raises:
        DeclarationError: It cannot be read, or has a column that Delta does not store.
    """
    columns = parsed(text, location)
    for name in columns.names:
        if UNSTORED.intersection(name):
            raise location.error(
                f"schema: {name!r} is no name that Delta stores: rename it, without spaces and any of ,;{{}}()="
            )
    return columns


def schema(text: str) -> StructType:
    """The columns that a text declares, as Spark writes them: `order_id string COMMENT 'key of an order', ...`.

    Raises:
        DeclarationError: It cannot be read.
    """
    return parsed(text, CodeLocation.of_caller())
