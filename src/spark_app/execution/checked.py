"""Which pipelines had no mistake when their functions were last called without rows; it is known without Spark.

The file beside Spark's logs holds for one state of the project: the modules, the configuration, and what is installed.
"""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from spark_app import project
from spark_app.local_files import write_atomic
from spark_app.project import Project
from spark_app.settings import Settings

RECORD: Final = "checked.json"
Notes = Sequence[tuple[str, str]]
"""The names of functions of a pipeline, and what could not be checked in each without data."""


def without_mistakes(settings: Settings) -> dict[str, Notes]:
    """The pipelines that had no mistake in the project as it is now, each with its notes; none where it has changed."""
    with suppress(OSError):
        return _known(settings, fingerprint(project.required(), settings))
    return {}


def _known(settings: Settings, now: str) -> dict[str, Notes]:
    """The same of a project of this fingerprint."""
    try:
        content = json.loads(_record(settings).read_text(encoding="utf-8"))
        if content["fingerprint"] != now:
            return {}
        return {str(name): [(function, said) for function, said in notes] for name, notes in content["notes"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def keep(settings: Settings, notes: Mapping[str, Notes]) -> None:
    """Notes that pipelines have no mistake; a folder that cannot be written is no reason not to run."""
    now = fingerprint(project.required(), settings)
    content = json.dumps({"fingerprint": now, "notes": _known(settings, now) | dict(notes)}, sort_keys=True)
    with suppress(OSError):
        write_atomic(_record(settings), content.encode("utf-8"))


def fingerprint(of: Project, settings: Settings) -> str:
    """Names what a project says, and what reads it: it is another one if a mistake may have come or gone."""
    found = hashlib.sha256(" ".join([sys.version, version("spark-app"), *_installed()]).encode())
    folders = {of.source_folder: ("*.py",), settings.config: ("*.yml", "*.conf")}
    for folder, patterns in folders.items():
        for file in sorted(file for pattern in patterns for file in folder.rglob(pattern)):
            content = file.read_bytes()
            found.update(f"{file.relative_to(folder)} {len(content)} ".encode())
            found.update(content)
    return found.hexdigest()


def _installed() -> list[str]:
    """The packages that modules may import, with their versions, as pip names the folders that describe them."""
    return sorted(str(each) for place in sys.path for each in Path(place).glob("*.dist-info"))


def _record(settings: Settings) -> Path:
    return settings.logs_path / RECORD
