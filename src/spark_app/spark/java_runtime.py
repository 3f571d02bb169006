"""The Java that is on this machine, and the Spark that it is for."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from spark_app.errors import MachineError
from spark_app.settings import process_environment

OLDEST: Final = 17
ASK: Final = "install a Java 17 or 21 runtime (on Debian and Ubuntu: apt-get install openjdk-17-jre-headless)"


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
    version = java_version(java)
    major = re.match(r"(?:1\.)?(\d+)", version)
    if not major:
        raise MachineError(f"{found} does not run: {ASK}")
    if int(major[1]) < OLDEST:
        raise MachineError(f"Java {version} at {found} is too old for Spark 4.2: {ASK}")
    return java


def spark_home() -> Path:
    """The folder of the installed PySpark, found without loading it.

    Raises:
        MachineError: This Python has no PySpark of its own. Another is not taken, since its jars would be changed.
    """
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise MachineError(f"{sys.executable} has no PySpark: run scripts/setup-dev.sh, and use the Python in .venv")
    zipped = next((parent for parent in Path(found.origin).parents if parent.suffix == ".zip"), None)
    # spark-submit puts <home>/python/lib/pyspark.zip before the installed package.
    home = (zipped.parents[2] if zipped else Path(found.origin).parent).resolve()
    if not home.is_relative_to(Path(sys.prefix).resolve()):
        raise MachineError(f"the PySpark at {home} is not that of {sys.prefix}: unset PYTHONPATH and SPARK_HOME")
    return home


def java_version(java: Path) -> str:
    """The full version of a Java; empty if it does not run.

    Read from a file where there is one: Java itself would take a moment of every command to tell.
    """
    try:
        words = (java.parent.parent / "release").read_text(encoding="utf-8")
    except OSError:
        try:
            words = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
        except OSError:
            words = ""
    version = re.search(r'(?:^JAVA_VERSION=| version )"([^"]+)"', words, re.MULTILINE)
    return version[1] if version else ""
