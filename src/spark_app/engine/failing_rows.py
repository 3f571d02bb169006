"""Finds the row that makes a function fail: its result is computed of half of the rows, again and again."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from spark_app import project
from spark_app.engine.code_location import CodeLocation
from spark_app.errors import SparkAppError
from spark_app.telemetry.exceptions import message_of

OF_ROWS: Final = re.compile(
    r"PythonException|ArithmeticException|NumberFormatException|DateTimeException|SparkRuntimeException|"
    r"\[(?:CAST_INVALID_INPUT|DIVIDE_BY_ZERO|ARITHMETIC_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE|CAST_OVERFLOW|INVALID_)"
)
"""What an exception says that one row may be the cause of."""
FRAME: Final = re.compile(r'File "([^"]+)", line (\d+)')
RAISED: Final = re.compile(r"^\w*(?:Error|Exception|Interrupt|Exit)\b.*", re.MULTILINE)
"""The last line of a traceback of Python."""
CONDITION: Final = re.compile(r"\[[A-Z_]+(?:\.[A-Z_]+)?\] [^\n]*?(?= SQLSTATE|\n|$)")
"""What Spark says of an exception of its own."""
MAX_SECONDS: Final = 60.0
MAX_HALVES: Final = 40
MAX_CHARACTERS: Final = 300
NESTED: Final = (ArrayType, MapType, StructType)


@dataclass(frozen=True)
class Computation:
    """What a function makes of some rows.

    Attributes:
        function: Its name.
        location: Where it is declared.
        rows: Its rows.
        of: What the rows are of, for the message.
        key: The columns that identify a row; where nothing says it, those that it has.
        compute: Calls the function with some of the rows.
        look: Shows a row, of which it gets the condition, or the file.
    """

    function: str
    location: CodeLocation
    rows: DataFrame
    of: str
    key: Sequence[str]
    compute: Callable[[DataFrame], DataFrame]
    look: Callable[[str], str]


@contextmanager
def named(computation: Callable[[], Computation]) -> Iterator[None]:
    """Names the row that an exception is about, and the line; what is about no row is raised as it is.

    Args:
        computation: Tells what failed; it is asked for only where something has.

    Raises:
        SparkAppError: A row makes the function fail.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if isinstance(error, AnalysisException) or not OF_ROWS.search(f"{type(error).__name__} {message_of(error)}"):
            raise
        raise SparkAppError(_explained(error, computation())) from error


def _explained(error: Exception, of: Computation) -> str:
    text = message_of(error)
    said = (RAISED.findall(text) or CONDITION.findall(text) or [text.partition("\n")[0]])[-1].strip()[:MAX_CHARACTERS]
    condition = _failing_row(of)
    where = f"fails on a row of {of.of}" if condition else f"fails on rows of {of.of}"
    look = f"; see it: {of.look(condition)}" if condition else ""
    return str(_line(text, of.location).error(f"{of.function} {where}: {said}{look}"))


def _line(text: str, otherwise: CodeLocation) -> CodeLocation:
    """The last line of the project that a traceback of Python names."""
    folder = project.required().source_folder
    own = [CodeLocation(file, int(line)) for file, line in FRAME.findall(text) if Path(file).is_relative_to(folder)]
    return own[-1] if own else otherwise


def _failing_row(of: Computation) -> str | None:
    """The SQL condition that selects a row that fails by itself; None where none was found in time."""
    flat = [field.name for field in of.rows.schema if not isinstance(field.dataType, NESTED)]
    number, part, deadline = F.xxhash64(*flat), F.lit(True), time.monotonic() + MAX_SECONDS
    for bit in range(MAX_HALVES):
        if time.monotonic() > deadline:
            return None
        found = of.rows.where(part).limit(2).collect()
        if len(found) == 1:
            key = [name for name in of.key if name in flat] or flat
            return " and ".join(f"{name} {_equals(found[0][name])}" for name in key)
        halves = [part & (F.shiftright(number, bit).bitwiseAND(1) == F.lit(side)) for side in (0, 1)]
        failing = next((half for half in halves if _fails(of, half)), None)
        if failing is None:
            return None
        part = failing
    return None


def _equals(value: object) -> str:
    if value is None:
        return "is null"
    return f"= {value}" if isinstance(value, int | float) else "= '" + str(value).replace("'", "''") + "'"


def _fails(of: Computation, part: Column) -> bool:
    try:
        of.compute(of.rows.where(part)).write.format("noop").mode("overwrite").save()
    except (PySparkException, Py4JJavaError):
        return True
    return False
