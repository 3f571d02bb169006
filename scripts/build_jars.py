#!/usr/bin/env python
"""Compiles the classes of our own into the jars that environments get, and writes their SHA-256 into the lists of jars.

`scripts/build_jars.py`, after a change of a source; needs a JDK and an environment with the jars of S3 in it:
`python -m spark_app.spark.jars s3`. The same source gives the same jar.
"""

import hashlib
import io
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from spark_app.spark import jars
from spark_app.spark.java_runtime import spark_home

LISTS: Final = jars.OWN.parents[2] / "config" / "spark"
EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class Jar(NamedTuple):
    """A jar with the classes of one source, and the list that it is in."""

    source: str
    name: str
    list_name: str

    @property
    def file(self) -> Path:
        """Where the jar is committed, beside its source."""
        return jars.OWN / self.name

    @property
    def sums(self) -> Path:
        """The list with its SHA-256."""
        return LISTS / f"{self.list_name}.sha256"


JARS: Final = (
    Jar("S3ConditionalPutLogStore.java", "spark-app-s3-log-store.jar", jars.S3),
    Jar("JavaLocalFileSystem.java", "spark-app-local-files.jar", jars.ALWAYS),
)


def compiled(source: str) -> bytes:
    """The jar, without times and without compression, which may differ between machines."""
    class_path = os.pathsep.join(
        str(jar) for name in ("delta-storage-*", "hadoop-client-*") for jar in spark_home().glob(f"jars/{name}.jar")
    )
    with tempfile.TemporaryDirectory() as folder:
        command = ["javac", "--release", "17", "-g:source,lines", "-Xlint:all", "-Werror", "-proc:none", "-d", folder]
        subprocess.run([*command, "-cp", class_path, jars.OWN / source], check=True)
        return _zipped(Path(folder))


def _zipped(folder: Path) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as jar:
        for file in sorted(folder.rglob("*.class")):
            jar.writestr(zipfile.ZipInfo(file.relative_to(folder).as_posix(), EPOCH), file.read_bytes())
    return content.getvalue()


def listed(lines: Iterable[str], jar: Jar) -> str:
    """The list of jars with the digest of this one."""
    others = [line for line in lines if not line.endswith(f"  {jar.name}")]
    line = f"{hashlib.sha256(jar.file.read_bytes()).hexdigest()}  {jar.name}"
    return "\n".join(sorted([*others, line], key=lambda line: line[66:])) + "\n"


if __name__ == "__main__":
    for jar in JARS:
        jar.file.write_bytes(compiled(jar.source))
        jar.sums.write_text(listed(jar.sums.read_text(encoding="utf-8").splitlines(), jar), encoding="utf-8")
