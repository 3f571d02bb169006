"""The Java that Spark is started with, and an archive of its classes that makes each start shorter.

An archive fits one Java and one folder of jars. With another Java, or other jars, Spark starts without it and says so
nowhere.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from app.errors import MachineError
from app.settings import PROJECT, process_environment

OLDEST: Final = 17
ASK: Final = "install a Java 17 or 21 runtime (on Debian and Ubuntu: apt-get install openjdk-17-jre-headless)"
Rehearse = Callable[[Path], None]

REHEARSAL_SECONDS: Final = 600


def require_java() -> Path:
    """The `java` that Spark will start: that of `JAVA_HOME`, or else the first on the `PATH`.

    Raises:
        MachineError: There is none, or it is too old.
    """
    home = process_environment().get("JAVA_HOME")
    found = shutil.which(Path(home, "bin", "java") if home else "java")
    if not found:
        raise MachineError(
            f"no Java at JAVA_HOME={home}: correct or unset it, or {ASK}" if home else f"no Java found: {ASK}"
        )
    java = Path(found).resolve()
    version = _version(java)
    major = re.match(r"(?:1\.)?(\d+)", version)
    if not major:
        raise MachineError(f"{found} does not run: {ASK}")
    if int(major[1]) < OLDEST:
        raise MachineError(f"Java {version} at {found} is too old for Spark 4.2: {ASK}")
    return java


def spark_home() -> Path:
    """The folder of the installed PySpark, found without loading it.

    Raises:
        MachineError: This Python has no PySpark.
    """
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise MachineError(f"{sys.executable} has no PySpark: run scripts/setup-dev.sh, and use the Python in .venv")
    return Path(found.origin).parent


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


def _version(java: Path) -> str:
    """Read from a file where there is one: Java would take a moment of every command to tell."""
    try:
        words = (java.parent.parent / "release").read_text(encoding="utf-8")
    except OSError:
        try:
            words = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
        except OSError:
            words = ""
    told = re.search(r'(?:^JAVA_VERSION=| version )"([^"]+)"', words, re.MULTILINE)
    return told[1] if told else ""


def _name(java: Path) -> str:
    """The environment, so that a newer archive replaces an older one, and all that Java compares before it uses one."""
    return f"{_digest([str(spark_home())])}-{_digest(_class_path(java))}"


def _is_whole(file: Path) -> bool:
    """Java dies of an archive that was cut short, so each says in its name how long it is."""
    return file.stem.endswith(f"-{file.stat().st_size}")


def _class_path(java: Path) -> Iterator[str]:
    yield f"{java} {_version(java)} {java.stat().st_mtime_ns}"
    with os.scandir(spark_home() / "jars") as entries:  # in this order Java finds them, too
        for entry in entries:
            if entry.name.endswith(".jar"):
                yield f"{entry.name} {entry.stat().st_size} {entry.stat().st_mtime_ns}"


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
    """Runs a small day in a process of its own, since a JVM writes its classes down when it ends."""
    subprocess.run(
        [sys.executable, "-m", "app.session", str(archive.parent)],
        env=dict(process_environment()) | {"SPARK_SUBMIT_OPTS": f'"-XX:ArchiveClassesAtExit={archive}"'},
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=REHEARSAL_SECONDS,
        check=True,
    )
