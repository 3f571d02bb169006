"""What a session loads: a Java that fits, the jars beside Spark's own, and an archive of classes ready to run."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from app.errors import MachineError
from app.settings import process_environment

OLDEST_JAVA: Final = 17
HOW_TO_GET_JAVA: Final = "install a Java 17 or 21 runtime (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@21)"


def require_java() -> Path:
    """The `java` of `$JAVA_HOME`, or else of the PATH."""
    home = process_environment().get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else shutil.which("java")
    if not found:
        raise MachineError("no Java")
    return Path(found)


def class_data_archive(java: Path) -> Path | None:
    """The archive of ready classes that fits, if there is one."""
    return None
