"""Starts the JVM of a session with its mouth shut, and ends it."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from spark_app.errors import MachineError
from spark_app.settings import process_environment
from spark_app.spark.java_runtime import spark_home
from spark_app.telemetry.spark_settings import is_local

LAST_LINES: Final = 3
LAUNCHER: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # it only puts the command together
SECRETS: Final = re.compile(r"spark\.authenticate\.secret$|spark\.ssl\..*[pP]assword$")
"""What a session sets by itself, later than its JVM starts: command lines of processes are no secret."""
NOT_TELLING: Final = ("at ", "WARNING: Using incubator modules", "{", "#", "...")


def launch_jvm(properties: Mapping[str, str], log_file: Path) -> JavaGateway:
    """The way to a JVM of our own, whose every word is added to the log file.

    Args:
        properties: Spark properties that it starts with.
        log_file: A file in a folder that is there.

    Raises:
        MachineError: It does not come up; tells its last words.
    """
    conf = SparkConf(loadDefaults=False).setAll([each for each in properties.items() if not SECRETS.match(each[0])])
    said_before = log_file.stat().st_size if log_file.exists() else 0
    try:
        with log_file.open("ab") as log, _variables(_jvm_variables(properties)):
            return launch_gateway(conf, {"stdout": log, "stderr": subprocess.STDOUT})
    except (OSError, PySparkRuntimeError) as error:
        words = _last_words(log_file, said_before) or " ".join(str(error).split())
        raise MachineError(f"Java did not start Spark: {words}; see {log_file}") from error


def _jvm_variables(properties: Mapping[str, str]) -> dict[str, str]:
    """What the JVM inherits: this Spark and this Python, whatever else is installed, and nothing open to a network."""
    variables = {"SPARK_HOME": str(spark_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LAUNCHER_OPTS": LAUNCHER}
    return variables | ({"SPARK_LOCAL_IP": "127.0.0.1"} if is_local(properties) else {})


@contextmanager
def _variables(variables: Mapping[str, str]) -> Iterator[None]:
    environment = process_environment()
    before = {key: environment.get(key) for key in variables}
    environment.update(variables)
    try:
        yield
    finally:
        for key, value in before.items():
            environment.pop(key) if value is None else environment.update({key: value})


def is_dead() -> bool:
    """Whether the JVM that was there does not answer any more."""
    gateway: Any = SparkContext._gateway
    try:
        return gateway is not None and not gateway.jvm.System.nanoTime()
    except (Py4JError, OSError):
        return True


def stop_jvm(gateway: JavaGateway, *, patience: float) -> None:
    """Ends the JVM if it is ours: by itself, as its standard input ends; by force after so many seconds."""
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_words(log_file: Path, start: int) -> str:
    """The last lines after a place in the log that tell what happened; where in Java's code it did is left out."""
    content = log_file.read_bytes()[start:] if log_file.exists() else b""
    lines = [line.strip() for line in content.decode(errors="replace").splitlines()]
    return " | ".join([line for line in lines if line and not line.startswith(NOT_TELLING)][-LAST_LINES:])
