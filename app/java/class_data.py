"""An archive of Spark's classes, ready to run, that makes each start shorter.

An archive fits one Java and one folder of jars. With another Java, or other jars, Spark starts without it and says so
nowhere.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from app.java.runtime import java_version, spark_home
from app.settings import PROJECT, process_environment

Rehearse = Callable[[Path], None]

REHEARSAL_SECONDS: Final = 600


def class_data_archive(java: Path) -> Path | None:
    """The archive that this Java can start these jars with; None if it has not been built."""
    name = _name(java)
    return next((file for file in _folder().glob(f"{name}-*.jsa") if _is_whole(file)), None)


def build_class_data(java: Path, *, rehearse: Rehearse | None = None) -> Path | None:
    """Builds the archive in a rehearsal of a small day, unless it is there; None where there can be none.

    Args:
        java: The Java to build it for.
        rehearse: Makes the file it is given; None takes a real session.
    """
    try:
        return class_data_archive(java) or _built(_folder(), _name(java), rehearse or _rehearse)
    except (OSError, subprocess.SubprocessError):
        return None


def _name(java: Path) -> str:
    """The environment, so that a newer archive replaces an older one, and all that Java compares before it uses one."""
    return f"{_digest([str(spark_home())])}-{_digest(_class_path(java))}"


def _is_whole(file: Path) -> bool:
    """Java dies of an archive that was cut short, so each says in its name how long it is."""
    return file.stem.endswith(f"-{file.stat().st_size}")


def _class_path(java: Path) -> Iterator[str]:
    """What the archive depends on; times in whole seconds, since the layer of an image keeps no more."""
    yield f"{java} {java_version(java)} {int(java.stat().st_mtime)}"
    with os.scandir(spark_home() / "jars") as entries:  # in this order Java finds them, too
        for entry in entries:
            if entry.name.endswith(".jar"):
                yield f"{entry.name} {entry.stat().st_size} {int(entry.stat().st_mtime)}"


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def _folder() -> Path:
    given = process_environment().get("XDG_CACHE_HOME", "")
    try:
        return Path(given if given.startswith("/") else Path.home() / ".cache") / "spark-app" / "class-data"
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / f"spark-app-{os.getuid()}"


def _built(folder: Path, name: str, rehearse: Rehearse) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=folder) as scratch:
        made = Path(scratch, "classes.jsa")
        rehearse(made)
        archive = made.replace(folder / f"{name}-{made.stat().st_size}.jsa")
    for old in folder.glob(name.split("-", maxsplit=1)[0] + "-*.jsa"):
        if old != archive:
            old.unlink(missing_ok=True)
    return archive


def _rehearse(archive: Path) -> None:
    """Runs a small day in a process of its own, since a JVM writes its classes down when it ends.

    Compiled lightly, it takes a third less time, for the same archive.
    """
    options = f'"-XX:ArchiveClassesAtExit={archive}" -XX:TieredStopAtLevel=1'
    subprocess.run(
        [sys.executable, "-m", "app.session", str(archive.parent)],
        env=dict(process_environment()) | {"SPARK_SUBMIT_OPTS": options},
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=REHEARSAL_SECONDS,
        check=True,
    )
