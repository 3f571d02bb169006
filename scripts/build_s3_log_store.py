#!/usr/bin/env python
"""Compiles Delta's log store for S3 into the jar that environments get, and writes its SHA-256 into the list of jars.

`scripts/build_s3_log_store.py`, after a change of the source; needs a JDK and an environment with the jars of S3 in it:
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
from typing import Final

from spark_app.spark.java_runtime import spark_home

SPARK: Final = Path(__file__).resolve().parents[1] / "src" / "spark_app" / "spark"
SOURCE: Final = SPARK / "S3ConditionalPutLogStore.java"
JAR: Final = SPARK / "spark-app-s3-log-store.jar"
SUMS: Final = SPARK.parents[2] / "config" / "spark" / "jars-s3.sha256"
EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def compiled() -> bytes:
    """The jar, without times and without compression, which may differ between machines."""
    jars = spark_home() / "jars"
    with tempfile.TemporaryDirectory() as folder:
        command = ["javac", "--release", "17", "-g:source,lines", "-Xlint:all", "-Werror", "-proc:none", "-d", folder]
        class_path = os.pathsep.join(
            str(jar) for name in ("delta-storage-*", "hadoop-client-*") for jar in jars.glob(f"{name}.jar")
        )
        subprocess.run([*command, "-cp", class_path, SOURCE], check=True)
        return _zipped(Path(folder))


def _zipped(folder: Path) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as jar:
        for file in sorted(folder.rglob("*.class")):
            jar.writestr(zipfile.ZipInfo(file.relative_to(folder).as_posix(), EPOCH), file.read_bytes())
    return content.getvalue()


def listed(lines: Iterable[str], jar: bytes) -> str:
    """The list of jars with the digest of this one."""
    others = [line for line in lines if not line.endswith(f"  {JAR.name}")]
    return (
        "\n".join(sorted([*others, f"{hashlib.sha256(jar).hexdigest()}  {JAR.name}"], key=lambda line: line[66:]))
        + "\n"
    )


if __name__ == "__main__":
    JAR.write_bytes(compiled())
    SUMS.write_text(listed(SUMS.read_text(encoding="utf-8").splitlines(), JAR.read_bytes()), encoding="utf-8")
