"""Which files the raw rows of a source are in, and how they are written: `files(...)` of a `Source`."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, get_args

from spark_app.engine.code_location import CodeLocation, nearest
from spark_app.settings import Csv, Encoding
from spark_app.warehouse.raw_files import KINDS, FileFormat, Kind
from spark_app.warehouse.source_files import FilePattern, Files

ENCODINGS: Final[tuple[str, ...]] = get_args(Encoding)


class _Option(NamedTuple):
    """What an option may be, and how that is said."""

    is_right: Callable[[Any], bool]
    meaning: str


_ONE_CHARACTER: Final = _Option(lambda value: isinstance(value, str) and len(value) == 1, "one character")
_SWITCH: Final = _Option(lambda value: isinstance(value, bool), "True or False")
OPTIONS: Final[Mapping[str, Mapping[str, _Option]]] = {
    "json": {"multiLine": _SWITCH},
    "csv": {
        "sep": _ONE_CHARACTER,
        "quote": _ONE_CHARACTER,
        "encoding": _Option(lambda value: value in ENCODINGS, f"one of {', '.join(ENCODINGS)}"),
        "header": _SWITCH,
    },
}
"""The options of each format, by the names that Spark gives them."""


def files(pattern: str, *, format: Kind = "json", **options: Any) -> Files:  # noqa: A002 - Spark's name for it
    """The files of a source: `files("landing/{date:%Y/%m/%d}/*.csv.gz", format="csv", sep=";")`.

    Args:
        pattern: The path of the files of a day, below `raw.path` unless it is absolute or a URI. `{date}` is the day as
            YYYY-MM-DD, `{date:%Y/%m/%d}` in another form; `*`, `?` and `[...]` stand within names; a folder stands for
            its files.
        format: `json` (an object per line), `csv`, `parquet`, `orc`, or `text` (a line is the value of the only
            column).
        options: Of JSON `multiLine`, whether a file is one array of objects, or one object; of CSV `sep`, `quote`,
            `encoding` and `header`.

    Raises:
        DeclarationError: The pattern names no day, or the format or an option is not known.
    """
    location = CodeLocation.of_caller()
    if format not in KINDS:
        raise location.error(f"files of format {format!r} cannot be read: {nearest(str(format), KINDS)}")
    known = OPTIONS.get(format, {})
    for name, value in options.items():
        if name not in known:
            raise location.error(f"files of format {format} have no option {name}: {nearest(name, [*known])}")
        if not known[name].is_right(value):
            raise location.error(f"{name}={value!r} of files: {name} is {known[name].meaning}")
    try:
        found = FilePattern.of(pattern)
    except ValueError as error:
        raise location.error(f"files {pattern!r}: {error}") from error
    csv = Csv(**{"separator" if name == "sep" else name: value for name, value in options.items() if format == "csv"})
    is_multi_line = options.get("multiLine", False)
    return Files(found, FileFormat(format, csv, multi_line=is_multi_line, declared=location.shown))
