"""Fetches the jars of Delta and Kafka once and installs them beside Spark's own: `python -m spark_app.spark.jars`.

Everything that starts this PySpark then has them: `spark-submit`, notebooks, executors, the class-data archive. With
the argument `s3` it installs those of `s3a://`, with `jdbc` the drivers of databases, which the image has and other
environments need not have. The first two lists have a jar of our own that `scripts/build_jars.py` has compiled: a file
system of local disks, and Delta's log store for S3.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from spark_app.errors import MachineError, SparkAppError
from spark_app.local_files import exclusive_lock, write_atomic
from spark_app.settings import config_folder, process_environment
from spark_app.spark.java_runtime import require_java, spark_home

Note = Callable[[str], None]
Fetch = Callable[[Path, Note], None]

ALWAYS: Final = "jars"
"""The list of the jars that every environment has."""
S3: Final = "jars-s3"
JDBC: Final = "jars-jdbc"
LISTS: Final[Mapping[str, str]] = {ALWAYS: "Delta and Kafka", S3: "S3", JDBC: "databases"}
"""The lists of jars in `config/spark`, `NAME.ivy.xml` and `NAME.sha256`, and what their jars are for."""
OWN: Final = Path(__file__).parent
"""The folder with the jars of a list that no repository has: they come with the program."""
MANIFEST: Final = ".spark-app-"
"""What the name of the file begins with that says which jars of a list are installed; the name of the list follows."""
LOCK: Final = ".spark-app-lock"
UNFINISHED: Final = ".spark-app-unfinished-"
FIRST: Final = "slf4j-api-*"
"""The jar that Spark's launcher puts on the class path before `jars/*`, by how its name begins."""
ONCE: Final = "org.slf4j_"
"""What comes before that name where `jars/*` alone has the jar, as Ivy names jars by their groups."""
# Compiled lightly, Ivy takes half of the processor time.
SHORT_LIVED: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# A network that answers nothing ends in an error, too.
PATIENCE: Final = ("-Dsun.net.client.defaultConnectTimeout=20000", "-Dsun.net.client.defaultReadTimeout=60000")
FETCHED: Final = re.compile(r"\[SUCCESSFUL \] .*#(?P<name>[^;]+);(?P<version>[^!]+)!")
NOT_FETCHED: Final = re.compile(r":: [^#\s]+#([^;]+);(\S+): not found|\[FAILED +\] .*#([^;]+);([^!]+)!")
REASON: Final = re.compile(r"Server access error.*\((?:[a-z]+\.)*(.+)\)$")


@dataclass(frozen=True)
class JarList:
    """The expected jars: the SHA-256 of each by its name, the file that Ivy fetches them by, and a digest of both."""

    name: str
    digest: str
    jars: Mapping[str, str]
    ivy: Path

    @property
    def subject(self) -> str:
        """What the jars are for."""
        return LISTS[self.name]


def ensure_jars(
    *,
    note: Note,
    name: str = ALWAYS,
    folder: Path | None = None,
    config: Path | None = None,
    fetch: Fetch | None = None,
) -> None:
    """Installs the jars of a list beside Spark's own, and deletes those of an older list of that name.

    Once they are installed, it needs no network. Of two processes at the same time, the second waits for the first.

    Args:
        note: Is called with each line of progress.
        name: The list: `NAME.ivy.xml` and `NAME.sha256` in the folder of the lists.
        folder: Spark's folder of jars; None takes that of the installed PySpark.
        config: The folder of the lists; None takes `config/spark`.
        fetch: Fetches all jars into a folder; None takes PySpark's own Ivy.

    Raises:
        MachineError: A jar cannot be fetched or written, or has another SHA-256.
    """
    wanted = _read_list(name, config or config_folder() / "spark")
    folder = folder or spark_home() / "jars"
    if _is_installed(folder, wanted):
        return
    java = require_java()
    try:
        with exclusive_lock(folder / LOCK):
            if not _is_installed(folder, wanted):
                _install(folder, wanted, fetch or _ivy(java, wanted), note)
    except OSError as error:
        problem = f"{error.strerror} ({error.filename})" if error.filename else error.strerror
        raise MachineError(f"cannot put the jars of {wanted.subject} into {folder}: {problem}") from error


def are_installed() -> bool:
    """Whether `ensure_jars` has nothing to do."""
    return _is_installed(spark_home() / "jars", _read_list(ALWAYS, config_folder() / "spark"))


def main(arguments: Sequence[str]) -> int:
    """Fetches the jars unless they are in place, with an argument those of S3 or databases; the exit code."""
    name = "-".join([ALWAYS, *arguments])
    if name not in LISTS:
        _print(f"there is no list {name}.ivy.xml in config/spark: give no argument, s3 or jdbc")
        return 2
    try:
        ensure_jars(note=_print, name=name)
    except SparkAppError as error:
        _print(str(error))
        return error.exit_code
    return 0


def _print(line: str) -> None:
    sys.stderr.write(line + "\n")


def _read_list(name: str, config: Path) -> JarList:
    ivy, sums = config / f"{name}.ivy.xml", config / f"{name}.sha256"
    lines = sums.read_text(encoding="utf-8").splitlines()
    digest = hashlib.sha256(ivy.read_bytes() + sums.read_bytes()).hexdigest()
    return JarList(name, digest, {name: digest for digest, name in map(str.split, lines)}, ivy)


def _manifest(folder: Path, name: str) -> list[str]:
    """The digest of the list of a name that was installed here, and the names of its jars; empty if none was."""
    file = folder / f"{MANIFEST}{name}"
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


def _is_installed(folder: Path, wanted: JarList) -> bool:
    is_complete = all((folder / name).is_file() for name in wanted.jars)
    return is_complete and _manifest(folder, wanted.name)[:1] == [wanted.digest] and not any(folder.glob(FIRST))


def _name_once(folder: Path) -> None:
    """Renames the jar that Spark puts on the class path before all jars, which include it a second time.

    Java 21 refuses a class-data archive for a path with a jar twice. No other jar has its classes, so that its place
    does not matter. One of an older Spark goes, and so does the name that older versions of this program gave it.
    """
    for jar in sorted(folder.glob(FIRST), key=lambda each: each.suffix == ".jar"):
        for old in folder.glob(ONCE + FIRST):
            old.unlink()
        jar.replace(folder / f"{ONCE}{jar.stem}.jar")


def _install(folder: Path, wanted: JarList, fetch: Fetch, note: Note) -> None:
    for unfinished in folder.glob(UNFINISHED + "*"):
        shutil.rmtree(unfinished)
    _name_once(folder)
    missing = {name: digest for name, digest in wanted.jars.items() if _sha256(folder / name) != digest}
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=folder) as scratch:
        own = [OWN / name for name in missing if (OWN / name).is_file()]
        if len(own) < len(missing):
            fetch(Path(scratch), note)
        for jar in own:
            shutil.copy(jar, scratch)
        _move(wanted, missing, Path(scratch), folder)
        for old in set(_manifest(folder, wanted.name)[1:]) - set(wanted.jars):
            (folder / old).unlink(missing_ok=True)
        write_atomic(folder / f"{MANIFEST}{wanted.name}", ("\n".join([wanted.digest, *wanted.jars]) + "\n").encode())


def _move(wanted: JarList, jars: Mapping[str, str], source: Path, folder: Path) -> None:
    """Verifies all jars before it moves the first; each appears whole or not at all."""
    for name, digest in jars.items():
        _verify(source / name, digest, wanted.ivy)
    for name in jars:
        (source / name).replace(folder / name)


def _verify(file: Path, wanted: str, ivy: Path) -> None:
    digest = _sha256(file)
    if digest is None:
        raise MachineError(f"{file.name} was not fetched: is it in config/spark/{ivy.name}, in this version?")
    if digest != wanted:
        raise MachineError(
            f"{file.name} is not the file that was verified (its SHA-256 is {digest[:16]}..., not {wanted[:16]}...): "
            "nothing was installed; find out what your network serves in its place, then run the command again"
        )


def _sha256(file: Path) -> str | None:
    if not file.is_file():
        return None
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _ivy(java: Path, wanted: JarList) -> Fetch:
    """Fetches with the Ivy that PySpark contains."""

    def fetch(target: Path, note: Note) -> None:
        ivy = next((spark_home() / "jars").glob("ivy-*.jar"))
        pattern = f"{target}/[artifact]-[revision].[ext]"
        command = [java, *SHORT_LIVED, *PATIENCE, *_proxy(), "-jar", ivy, "-ivy", wanted.ivy, "-confs", "default"]
        command += ["-cache", target / "cache", "-retrieve", pattern, "-types", "jar", "bundle"]
        fetched = [name for name in wanted.jars if not (OWN / name).is_file()]
        note(f"fetching {len(fetched)} jars of {wanted.subject}, once")
        _run_ivy([str(word) for word in command], wanted.subject, note)

    return fetch


def _run_ivy(command: list[str], subject: str, note: Note) -> None:
    lines = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as ivy:
        try:
            for line in ivy.stdout or ():
                lines.append(line.strip())
                if fetched := FETCHED.search(line):
                    note(f"fetched {fetched['name']} {fetched['version']}")
        except BaseException:  # a signal above all: Ivy would go on
            ivy.kill()
            raise
    if ivy.returncode:
        raise MachineError(_failure(lines, subject))


def _failure(lines: list[str], subject: str) -> str:
    jars = [" ".join(filter(None, match.groups())) for line in lines if (match := NOT_FETCHED.search(line))]
    reasons = [match[1] for line in lines if (match := REASON.search(line))]
    reason = reasons[0] if reasons else (lines[-1] if lines and not jars else "not found in the Maven repository")
    return (
        f"cannot fetch {jars[0] if jars else f'the jars of {subject}'}: {reason}; "
        "check the network (a proxy is taken from HTTPS_PROXY), then run the command again"
    )


def _proxy() -> list[str]:
    """The proxy of HTTPS_PROXY as properties of Java, which does not read that variable."""
    environment = process_environment()
    proxy = urlsplit(environment.get("HTTPS_PROXY") or environment.get("https_proxy") or "")
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"] if proxy.hostname else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
