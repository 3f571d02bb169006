"""Starts the JVM of a session, whose output goes to a log file, and ends it."""

import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway

from spark_app.errors import MachineError
from spark_app.settings import process_environment
from spark_app.spark.java_runtime import spark_home
from spark_app.vocabulary.spark_settings import is_local

LAST_LINES: Final = 3
LOOK_SECONDS: Final = 0.05
"""How often it is looked whether a JVM has come up."""
LAUNCHER: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # it only puts the command together
SECRETS: Final = re.compile(r"spark\.authenticate\.secret$|spark\.ssl\..*[pP]assword$")
"""What a session sets by itself, later than its JVM starts: command lines of processes are no secret."""
NOT_TELLING: Final = ("at ", "WARNING: Using incubator modules", "{", "#", "...")


def launch_jvm(
    properties: Mapping[str, str], log_file: Path, *, is_wanted: Callable[[], bool] = lambda: True
) -> JavaGateway:
    """The way to a JVM of our own, all of whose output is added to the log file.

    PySpark connects with it, but does not start it: at a signal before the JVM is up, PySpark loses the process and
    deletes the folder that the JVM is to write its port to, and a JVM that cannot write it runs for good.

    Args:
        properties: Spark properties that it starts with.
        log_file: A file in a folder that is there.
        is_wanted: Asked until the JVM is up; one that is not wanted any more is killed.

    Raises:
        MachineError: It does not come up; the message has its last lines.
    """
    said_before = log_file.stat().st_size if log_file.exists() else 0
    try:
        return _connected(*_started(properties, log_file), is_wanted)
    except OSError as error:
        words = _last_words(log_file, said_before) or " ".join(str(error).split())
        raise MachineError(f"Java did not start Spark: {words}; see {log_file}") from error


def submit_command(properties: Mapping[str, str]) -> list[str]:
    """The command line of a JVM for PySpark; it ignores Ctrl-C and the end of the terminal, at which Python ends it."""
    given = [f"{name}={value}" for name, value in properties.items() if not SECRETS.match(name)]
    options = [word for each in given for word in ("--conf", each)]
    arguments = shlex.split(process_environment().get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    shell = ["/bin/sh", "-c", 'trap "" INT HUP; exec "$@"', "spark-submit"]
    return [*shell, str(spark_home() / "bin" / "spark-submit"), *options, *arguments]


def _started(properties: Mapping[str, str], log_file: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """The process of a JVM, which ends when its standard input does, and the file that it writes its port to."""
    file = Path(tempfile.mkdtemp(prefix="spark-app-"), "connection")
    own = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(file)}
    variables = {**process_environment(), **_jvm_variables(properties), **own}
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            submit_command(properties), env=variables, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
        )
    return process, file


def _connected(process: subprocess.Popen[bytes], file: Path, is_wanted: Callable[[], bool]) -> JavaGateway:
    """The way to a JVM, once it is up. Whatever hinders that, the JVM ends before the folder of the file is deleted."""
    try:
        while not file.is_file():
            if process.poll() is not None or not is_wanted():
                raise ChildProcessError(f"it ended before it was up (exit code {process.poll()})")
            time.sleep(LOOK_SECONDS)
        with file.open("rb") as said:
            port, length = struct.unpack(">ii", said.read(8))
            secret = said.read(length).decode()
        with _variables({"PYSPARK_GATEWAY_PORT": f"{port}", "PYSPARK_GATEWAY_SECRET": secret}):
            gateway: Any = launch_gateway()
        gateway.proc = process
    except BaseException:
        process.kill()
        process.communicate()  # which closes its standard input, too
        shutil.rmtree(file.parent, ignore_errors=True)
        raise
    shutil.rmtree(file.parent, ignore_errors=True)
    return gateway


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
    """Ends the JVM if this process started it: as its standard input ends; by force after so many seconds."""
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    if process.stdin:
        process.stdin.close()
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    finally:  # also where a second signal ends the wait
        process.kill()
        process.wait()


def _last_words(log_file: Path, start: int) -> str:
    """The last lines after a place in the log that tell what happened; where in Java's code it did is left out."""
    content = log_file.read_bytes()[start:] if log_file.exists() else b""
    lines = [line.strip() for line in content.decode(errors="replace").splitlines()]
    return " | ".join([line for line in lines if line and not line.startswith(NOT_TELLING)][-LAST_LINES:])
