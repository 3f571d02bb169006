"""The project whose pipelines run: the nearest folder upwards whose `pyproject.toml` has `[tool.spark-app]`.

`package` names its Python package (`app` if it does not say), whose folders `etl`, `streaming` and `ml` hold the
pipelines. `demo` names a module with generated data for where no source is configured: see `spark_app.execution.demo`.
"""

import importlib
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from spark_app.errors import ConfigError

MARK: Final = "pyproject.toml"
TABLE: Final = "spark-app"
PACKAGE: Final = "app"
HERE: Final = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Project:
    """A project.

    Attributes:
        folder: What holds its package, and `config/`.
        package: The name of its package.
        demo_module: The name of the module that generates data; None if it has none.
    """

    folder: Path
    package: str = PACKAGE
    demo_module: str | None = None

    @property
    def source_folder(self) -> Path:
        """The folder of its package."""
        return self.folder.joinpath(*self.package.split("."))

    def folder_of(self, package: str) -> Path:
        """The folder with the pipelines of a package, such as `etl`."""
        return self.source_folder / package

    def load(self, name: str) -> ModuleType:
        """A module of its package, by the name below it: `etl.daily_sales`.

        Raises:
            ConfigError: Another package of the same name comes first on Python's path.
        """
        return self._imported(f"{self.package}.{name}")

    @property
    def config(self) -> Path:
        """The folder of its configuration, which need not exist."""
        return self.folder / "config"

    def load_demo(self) -> ModuleType | None:
        """The module that generates data; None if it has none.

        Raises:
            ConfigError: Another package of the same name comes first on Python's path.
        """
        return self._imported(self.demo_module) if self.demo_module else None

    def _imported(self, name: str) -> ModuleType:
        if str(self.folder) not in sys.path:
            sys.path.insert(0, str(self.folder))
        root = importlib.import_module(name.partition(".")[0])
        folders = [Path(folder).resolve() for folder in root.__path__]
        if self.folder / root.__name__ not in folders:
            raise ConfigError(
                f"Python imports {root.__name__} from {', '.join(map(str, folders))}, not from the project "
                f"{self.folder}: remove that folder from PYTHONPATH, or give the package another name"
            )
        return importlib.import_module(name)


def find(start: Path) -> Project | None:
    """The project of a folder; None if it is in none.

    Raises:
        ConfigError: A `pyproject.toml` cannot be read, or has an unknown or a wrong key in the table.
    """
    for folder in (start, *start.parents):
        table = _table(folder / MARK)
        if table is not None:
            return Project(folder, **_checked(table, folder / MARK))
    return None


def current() -> Project | None:
    """The project of the current folder, or else that of the clone that runs; None without one."""
    return find(Path.cwd().resolve()) or find(HERE)


def required() -> Project:
    """The project whose pipelines are asked for.

    Raises:
        ConfigError: There is none, or this user cannot read the current folder: another project would take its place.
    """
    here = Path.cwd()
    if not os.access(here, os.R_OK | os.X_OK) or ((here / MARK).exists() and not os.access(here / MARK, os.R_OK)):
        raise ConfigError(
            f"user {os.getuid()} cannot read the project in {here}: let its owner run chmod -R go+rX on it"
        )
    found = current()
    if found is None:
        raise ConfigError(
            f"no project in {here}: no {MARK} of it or of a folder above has a table [tool.{TABLE}]; go to the "
            "folder of yours, or `spark-app init NAME` writes one into an empty folder"
        )
    return found


def _table(file: Path) -> Mapping[str, Any] | None:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):  # nothing says that it is one of ours
        return None
    except tomllib.TOMLDecodeError as error:
        if f"tool.{TABLE}" in file.read_text(encoding="utf-8"):
            raise ConfigError(f"{file} is not valid TOML: {error}") from error
        return None
    tools = content.get("tool")
    found = tools.get(TABLE) if isinstance(tools, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _checked(table: Mapping[str, Any], file: Path) -> dict[str, str]:
    keys = {"package": "package", "demo": "demo_module"}
    for key, value in table.items():
        if key not in keys:
            raise ConfigError(f"{file}: unknown key {key!r} in [tool.{TABLE}]; allowed are {', '.join(keys)}")
        if not isinstance(value, str) or not all(part.isidentifier() for part in value.split(".")):
            raise ConfigError(f"{file}: {key} in [tool.{TABLE}] must be the name of a Python module, not {value!r}")
    return {keys[key]: value for key, value in table.items()}
