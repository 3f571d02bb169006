"""The jars of Delta and Kafka, fetched once and put beside Spark's own.

So everything that starts this PySpark has them: `spark-submit`, notebooks, executors, the class-data archive.
`python -m app.jars` fetches them and builds that archive; after it nothing is fetched or built again.
"""

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from app.errors import MachineError, SparkAppError
from app.java.class_data import build_class_data
from app.java.runtime import require_java, spark_home
from app.settings import config_folder, process_environment

Note = Callable[[str], None]
Fetch = Callable[[Path, Note], None]

MANIFEST: Final = ".spark-app-jars"
LOCK: Final = ".spark-app-lock"
UNFINISHED: Final = ".spark-app-unfinished-"
FIRST: Final = "slf4j-api-*.jar"
# A network that swallows everything ends in an error, too.
PATIENCE: Final = ("-Dsun.net.client.defaultConnectTimeout=20000", "-Dsun.net.client.defaultReadTimeout=60000")
FETCHED: Final = re.compile(r"\[SUCCESSFUL \] .*#(?P<name>[^;]+);(?P<version>[^!]+)!")
NOT_FETCHED: Final = re.compile(
    r":: [^#\s]+#(?P<name>[^;]+);(?P<version>\S+): not found|\[FAILED +\] .*#([^;]+);([^!]+)!"
)
REASON: Final = re.compile(r"Server access error.*\((?:[a-z]+\.)*(.+)\)$")


@dataclass(frozen=True)
class JarList:
    """What should be there: the SHA-256 of each jar by its name, what Ivy fetches them by, and a digest of both."""

    digest: str
    jars: Mapping[str, str]
    ivy: Path


def ensure_jars(
    *, note: Note, folder: Path | None = None, config: Path | None = None, fetch: Fetch | None = None
) -> None:
    """Makes sure that the jars of `jars.ivy.xml` and `jars.sha256`, and none of an older list, lie beside Spark's own.

    Once they do, nothing is fetched and no network is needed. Two at once are right: the second waits, and finds them.

    Args:
        note: Is told what is worth telling, a line each.
        folder: Spark's folder of jars; None takes that of the installed PySpark.
        config: The folder of the two lists; None takes `config/spark`.
        fetch: Puts all the jars into a folder; None takes PySpark's own Ivy.

    Raises:
        MachineError: They cannot be fetched or written, or are not what was verified.
    """
    wanted = _read_list(config or config_folder() / "spark")
    folder = folder or spark_home() / "jars"
    if _is_recognised(folder, wanted):
        return
    java = require_java()
    try:
        with _locked(folder):
            if not _is_recognised(folder, wanted):
                _install(folder, wanted, fetch or _ivy(java, wanted), note)
    except OSError as error:
        problem = f"{error.strerror} ({error.filename})" if error.filename else error.strerror
        raise MachineError(f"cannot put the jars of Delta and Kafka into {folder}: {problem}") from error


def main() -> int:
    """Provides for all that a session loads, with a line and the seconds for each; the exit code."""
    try:
        java = require_java()
        _timed("jars of Delta and Kafka", _jars)
        _timed("class-data archive", lambda: _size(build_class_data(java)))
    except SparkAppError as error:
        _say(str(error))
        return error.exit_code
    return 0


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _timed(what: str, work: Callable[[], str]) -> None:
    start = time.monotonic()
    result = work()
    _say(f"{what}: {result} ({time.monotonic() - start:.1f} s)")


def _jars() -> str:
    ensure_jars(note=_say)
    return "in place"


def _size(archive: Path | None) -> str:
    return (
        f"{archive.stat().st_size / 1e6:.0f} MB, {archive}"
        if archive
        else "not possible with this Java; starts take longer"
    )


def _read_list(config: Path) -> JarList:
    ivy, sums = config / "jars.ivy.xml", config / "jars.sha256"
    lines = sums.read_text(encoding="utf-8").splitlines()
    digest = hashlib.sha256(ivy.read_bytes() + sums.read_bytes()).hexdigest()
    return JarList(digest, {name: digest for digest, name in map(str.split, lines)}, ivy)


def _manifest(folder: Path) -> list[str]:
    """The digest of the list that the jars here were made from, and their names; nothing if there are none of ours."""
    file = folder / MANIFEST
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


def _is_recognised(folder: Path, wanted: JarList) -> bool:
    is_complete = all((folder / name).is_file() for name in wanted.jars)
    return is_complete and _manifest(folder)[:1] == [wanted.digest] and not any(folder.glob(FIRST))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Whoever holds the lock lets go of it by ending, however that happens; the file stays."""
    with (folder / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _name_once(folder: Path) -> None:
    """Spark puts `slf4j-api-*` on the class path, and then all jars, so that one is there twice.

    Java 21 refuses a class-data archive for such a path. As a .zip it is there once, and still the first.
    """
    for jar in folder.glob(FIRST):
        jar.replace(jar.with_suffix(".zip"))


def _install(folder: Path, wanted: JarList, fetch: Fetch, note: Note) -> None:
    for left in folder.glob(UNFINISHED + "*"):
        shutil.rmtree(left)
    _name_once(folder)
    missing = {name: digest for name, digest in wanted.jars.items() if _sha256(folder / name) != digest}
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=folder) as scratch:
        if missing:
            fetch(Path(scratch), note)
            _move(missing, Path(scratch), folder)
        for old in set(_manifest(folder)[1:]) - set(wanted.jars):
            (folder / old).unlink(missing_ok=True)
        made = Path(scratch, MANIFEST)
        made.write_text("\n".join([wanted.digest, *wanted.jars]) + "\n", encoding="utf-8")
        made.replace(folder / MANIFEST)


def _move(jars: Mapping[str, str], source: Path, folder: Path) -> None:
    """All are verified before the first is moved; each appears whole or not at all."""
    for name, digest in jars.items():
        _verify(source / name, digest)
    for name in jars:
        (source / name).replace(folder / name)


def _verify(file: Path, wanted: str) -> None:
    found = _sha256(file)
    if found is None:
        raise MachineError(f"{file.name} was not fetched: is it in config/spark/jars.ivy.xml, in this version?")
    if found != wanted:
        raise MachineError(
            f"{file.name} is not the file that was verified (its SHA-256 is {found[:16]}..., not {wanted[:16]}...): "
            "nothing was installed; find out what your network serves in its place, then run the command again"
        )


def _sha256(file: Path) -> str | None:
    if not file.is_file():
        return None
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _ivy(java: Path, wanted: JarList) -> Fetch:
    """Fetches with the Ivy that PySpark brings along."""

    def fetch(target: Path, note: Note) -> None:
        ivy = next((spark_home() / "jars").glob("ivy-*.jar"))
        command = [java, *PATIENCE, *_proxy(), "-jar", ivy, "-ivy", wanted.ivy, "-cache", target / "cache"]
        command += [
            "-retrieve",
            f"{target}/[artifact]-[revision].[ext]",
            "-confs",
            "default",
            "-types",
            "jar",
            "bundle",
        ]
        note(f"fetching {len(wanted.jars)} jars of Delta and Kafka, once")
        _run_ivy([str(word) for word in command], note)

    return fetch


def _run_ivy(command: list[str], note: Note) -> None:
    said = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as ivy:
        for line in ivy.stdout or ():
            said.append(line.strip())
            if fetched := FETCHED.search(line):
                note(f"fetched {fetched['name']} {fetched['version']}")
    if ivy.returncode:
        raise MachineError(_failure(said))


def _failure(said: list[str]) -> str:
    jars = [f"{found['name']} {found['version']}" for line in said if (found := NOT_FETCHED.search(line))]
    reasons = [found[1] for line in said if (found := REASON.search(line))]
    reason = reasons[0] if reasons else (said[-1] if said and not jars else "not found in the Maven repository")
    return (
        f"cannot fetch {jars[0] if jars else 'the jars of Delta and Kafka'}: {reason}; "
        "check the network (a proxy is taken from HTTPS_PROXY), then run the command again"
    )


def _proxy() -> list[str]:
    """Java does not know the variable that everything else takes a proxy from."""
    environment = process_environment()
    proxy = urlsplit(environment.get("HTTPS_PROXY") or environment.get("https_proxy") or "")
    return [f"-Dhttps.proxyHost={proxy.hostname}", f"-Dhttps.proxyPort={proxy.port or 80}"] if proxy.hostname else []


if __name__ == "__main__":
    sys.exit(main())
