"""An archive of Spark's classes, ready to run, that makes each start shorter.

`python -m spark_app.spark.class_data_archive` builds it.

An archive fits one Java and one folder of jars. With another Java or other jars, Spark starts without it and does not
report that.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from spark_app.errors import MachineError
from spark_app.local_files import exclusive_lock
from spark_app.settings import PROJECT, process_environment
from spark_app.spark.java_runtime import java_version, require_java, spark_home

Rehearse = Callable[[Path], None]

NO_RELOCATION: Final = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
"""Flags of a Java that maps an archive. Since 17 it moves an archive to a random address, which writes to all of its
pages: `java -version` takes 0.5 s and 185 MB then, and 0.06 s and 36 MB with these flags. See `docs/decisions/0003`."""
REHEARSAL_SECONDS: Final = 600
LOCK: Final = ".lock"
UNFINISHED: Final = ".unfinished-"


def class_data_archive(java: Path) -> Path | None:
    """The archive that this Java can start these jars with; None if it has not been built."""
    name = _name(java)
    return next((file for file in _folder().glob(f"{name}-*.jsa") if _is_whole(file)), None)


def mapping_options(java: Path) -> str:
    """The options with which this Java maps its archive; empty if that has not been built."""
    archive = class_data_archive(java)
    return "" if archive is None else f'{NO_RELOCATION} "-XX:SharedArchiveFile={archive}"'


def build_class_data(java: Path, *, rehearse: Rehearse | None = None) -> Path | None:
    """Builds the archive in a rehearsal of a small day, unless it exists; None where it cannot be built.

    Two processes that build at the same time take turns, and the second finds the archive of the first.

    Args:
        java: The Java to build it for.
        rehearse: Writes the file it is given; None runs a real session.
    """
    try:
        return class_data_archive(java) or _build_in_turn(java, rehearse or _rehearse)
    except (OSError, subprocess.SubprocessError):
        return None


def _name(java: Path) -> str:
    """A digest of the environment, whose newer archive replaces an older one, and of all that Java compares."""
    return f"{_digest([str(spark_home())])}-{_digest(_class_path(java))}"


def _is_whole(file: Path) -> bool:
    """Java crashes with an archive that was cut short, so the name of each ends with its size."""
    return file.stem.endswith(f"-{file.stat().st_size}")


def _class_path(java: Path) -> Iterator[str]:
    """What the archive depends on; times in whole seconds, since an image layer stores no fractions."""
    yield f"{java} {java_version(java)} {int(java.stat().st_mtime)}"
    with os.scandir(spark_home() / "jars") as entries:  # Java finds them in this order
        for entry in entries:
            if entry.name.endswith(".jar"):
                yield f"{entry.name} {entry.stat().st_size} {int(entry.stat().st_mtime)}"


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def _folder() -> Path:
    cache = process_environment().get("XDG_CACHE_HOME", "")
    try:
        return Path(cache if cache.startswith("/") else Path.home() / ".cache") / "spark-app" / "class-data"
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / f"spark-app-{os.getuid()}"


def _build_in_turn(java: Path, rehearse: Rehearse) -> Path:
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(folder / LOCK):
        return class_data_archive(java) or _build(folder, _name(java), rehearse)


def _build(folder: Path, name: str, rehearse: Rehearse) -> Path:
    for unfinished in folder.glob(UNFINISHED + "*"):  # of a build that was killed: each may hold 200 MB
        shutil.rmtree(unfinished)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=folder) as scratch:
        file = Path(scratch, "classes.jsa")
        rehearse(file)
        archive = file.replace(folder / f"{name}-{file.stat().st_size}.jsa")
    for old in folder.glob(name.split("-", maxsplit=1)[0] + "-*.jsa"):
        if old != archive:
            old.unlink(missing_ok=True)
    return archive


def _rehearse(archive: Path) -> None:
    """Runs a small day in a process of its own, since a JVM writes the archive when it ends.

    Compiled lightly, it takes a third less time, for the same archive.
    """
    options = f'"-XX:ArchiveClassesAtExit={archive}" -XX:TieredStopAtLevel=1'
    subprocess.run(
        [sys.executable, "-m", "spark_app.spark.rehearsal", str(archive.parent)],
        env=dict(process_environment()) | {"SPARK_SUBMIT_OPTS": options},
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=REHEARSAL_SECONDS,
        check=True,
    )


def build_in_background(java: Path) -> bool:
    """Starts a process that builds the archive with the lowest priority; whether one was needed."""
    if class_data_archive(java):
        return False
    subprocess.Popen(
        [sys.executable, "-m", "spark_app.spark.class_data_archive", "--idle"],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return True


def _yield_to_others() -> None:
    """Leaves the processor to every other process; its children do, too."""
    os.nice(19)
    if hasattr(os, "sched_setscheduler"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main(arguments: Sequence[str]) -> int:
    """Builds the archive, or starts to (`--background`); the exit code."""
    try:
        java = require_java()
    except MachineError as error:
        _print(str(error))
        return error.exit_code
    if "--background" in arguments:
        if build_in_background(java):
            _print("building the class-data archive in the background: later starts of Spark take less time")
        return 0
    if "--idle" in arguments:
        _yield_to_others()
    archive = build_class_data(java)
    if archive is None:
        _print("cannot build the class-data archive with this Java and folder; Spark starts without it")
        return 0
    _print(f"class-data archive: {archive.stat().st_size / 1e6:.0f} MB, {archive}")
    return 0


def _print(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
