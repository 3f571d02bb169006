"""The only place that builds a SparkSession, and the only one that ends it.

Every word of Spark goes to one log file: log4j as JSON lines (`config/spark/log4j2.properties`), the rest as it comes.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyspark
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from app.errors import MachineError
from app.jars import class_data_archive, require_java
from app.settings import Settings, config_folder, process_environment, read_spark_properties

OPTIONS: Final = "spark.driver.extraJavaOptions"
EVENTS: Final = "spark.eventLog.dir"
STOP_SECONDS: Final = 10
LAST_LINES: Final = 3
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def start(
    settings: Settings, *, name: str, events: Path | None, log_file: Path, extra: Mapping[str, str] = NOTHING
) -> SparkSession:
    """A session that is ready to work; what the JVM says is in `log_file`, never on the terminal.

    Args:
        settings: Where things are.
        name: The `spark.app.name`.
        events: The folder of event logs; None takes that of the Spark properties, or else of the settings.
        log_file: The file that Spark's own noise is added to.
        extra: Spark properties that win over all others.

    Raises:
        MachineError: No Java, a folder that cannot be written, or a JVM that does not come up.
    """
    _made(log_file.parent)
    if _is_submitted():
        gateway, conf = _joined(log_file)
        properties = read_spark_properties() | dict(conf.getAll())
    else:
        properties = {"spark.master": "local[*]"} | read_spark_properties()
    properties |= {"spark.app.name": name} | ({EVENTS: str(events)} if events else {}) | extra
    properties[EVENTS] = _event_folder(properties.get(EVENTS, str(settings.events_path)))
    if not _is_submitted():
        properties = _embedded(properties, log_file)
        gateway = _launched(properties, log_file)
    return _session(gateway, properties, log_file)


def stop(spark: SparkSession) -> None:
    """Ends a session, and its JVM if this process started it."""
    gateway: Any = SparkContext._gateway
    spark.stop()
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    _end(process)


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in process_environment()


def _joined(log_file: Path) -> tuple[JavaGateway, SparkConf]:
    """The JVM that spark-submit has started, with its log turned to our file."""
    gateway = launch_gateway()
    jvm: Any = gateway.jvm
    jvm.java.lang.System.setProperty("app.log.file", str(log_file))
    jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(jvm.java.net.URI(_log_config()))
    return gateway, SparkConf(_jvm=jvm)


def _embedded(properties: Mapping[str, str], log_file: Path) -> dict[str, str]:
    """Properties of a JVM of our own: quiet, on the loopback if it is alone, with its classes ready."""
    options = [
        properties.get(OPTIONS, ""),
        f'"-Dlog4j2.configurationFile={_log_config()}"',
        f'"-Dapp.log.file={log_file.absolute()}"',
    ]
    archive = class_data_archive(require_java())
    if archive is not None:
        options += ["-Xshare:auto", f'"-XX:SharedArchiveFile={archive}"', "-Xlog:disable"]
    alone = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} if _is_local(properties) else {}
    return alone | dict(properties) | {OPTIONS: " ".join(options).strip()}


def _is_local(properties: Mapping[str, str]) -> bool:
    return properties["spark.master"].startswith("local")


def _log_config() -> str:
    return (config_folder() / "spark" / "log4j2.properties").as_uri()


def _launched(properties: Mapping[str, str], log_file: Path) -> JavaGateway:
    conf = SparkConf(loadDefaults=False).setAll(list(properties.items()))
    try:
        with log_file.open("ab") as log, _variables(_jvm_variables(properties)):
            return launch_gateway(conf, {"stdout": log, "stderr": subprocess.STDOUT})
    except (OSError, PySparkRuntimeError) as error:
        raise MachineError(f"Java did not start Spark: {_last_words(log_file) or error}; see {log_file}") from error


def _jvm_variables(properties: Mapping[str, str]) -> dict[str, str]:
    """What the JVM inherits: this Spark and this Python, whatever else is installed, and nothing open to a network."""
    variables = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable}
    return variables | ({"SPARK_LOCAL_IP": "127.0.0.1"} if _is_local(properties) else {})


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


def _session(gateway: JavaGateway, properties: Mapping[str, str], log_file: Path) -> SparkSession:
    conf = SparkConf(_jvm=gateway.jvm).setAll(list(properties.items()))
    try:
        with _variables({"PYSPARK_PYTHON": sys.executable}):
            return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except Py4JJavaError as error:
        cause = str(error.java_exception.toString()).splitlines()[0]
        _abandon(gateway)
        raise MachineError(f"Spark did not start: {cause}; see {log_file}") from error
    except BaseException:
        _abandon(gateway)
        raise


def _abandon(gateway: JavaGateway) -> None:
    process = getattr(gateway, "proc", None)
    if process is not None:
        SparkContext._gateway = SparkContext._jvm = None
        _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Waits for a JVM that ends because its standard input does; kills one that hangs."""
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _event_folder(folder: str) -> str:
    """The folder of event logs as Spark wants it: there already, and absolute if it is on this machine."""
    parts = urlsplit(folder)
    if parts.scheme not in ("", "file"):
        return folder
    return _made(Path(unquote(parts.path) if parts.scheme else folder).absolute()).as_uri()


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(f"cannot make folder {folder}: {error.strerror}") from error
    return folder


def _last_words(log_file: Path) -> str:
    lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines() if log_file.exists() else []
    return " | ".join([line.strip() for line in lines if line.strip()][-LAST_LINES:])
