"""Which code is the project's, and not that of an installed package, whose version stands for it."""

import re
import sysconfig
from functools import cache
from pathlib import Path
from types import ModuleType

import delta
import pyspark

import spark_app
from spark_app.declarations import flat_code


@cache
def _installed_folders() -> tuple[str, ...]:
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return (*paths, *(str(Path(f"{each.__file__}").parent) for each in (spark_app, pyspark, delta)))


@cache
def is_own(file: str) -> bool:
    """Whether a file is code of the project, or beside it: no version of an installed package stands for it."""
    is_file = file.endswith(".py")
    return is_file and not file.startswith(_installed_folders()) and "site-packages" not in file and "<" not in file


def file_of(module: ModuleType | None) -> str:
    """The file of a module; empty where it has none."""
    return f"{getattr(module, '__file__', '')}"


@cache
def _assigned_lines(text: str) -> dict[str, int]:
    """The lines in which the names of a module get their first value."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if match := re.match(r"([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)", line):
            found.setdefault(match[1], number)
    return found


def assigned(file: str, name: str) -> int:
    """The line of a module in which a name gets its first value; 0 where none is seen."""
    return _assigned_lines(flat_code.text_of(file)).get(name, 0)
