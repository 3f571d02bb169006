"""The only place that builds a SparkSession, and the only one that ends it.

Every word of Spark goes to one log file: log4j as JSON lines (`config/spark/log4j2.properties`), the rest as it comes.
"""

import importlib
import logging
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partialmethod
from pathlib import Path
from socketserver import BaseServer
from threading import Thread
from types import MappingProxyType
from typing import Any, Final

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from spark_app.errors import MachineError, SparkAppError
from spark_app.local_files import ensure_dir, local_path
from spark_app.settings import Settings, config_folder, process_environment
from spark_app.spark import call_sites
from spark_app.spark.class_data_archive import mapping_options
from spark_app.spark.jars import are_installed
from spark_app.spark.java_runtime import require_java
from spark_app.spark.jvm import launch_jvm, stop_jvm
from spark_app.vocabulary.spark_settings import is_local

OPTIONS: Final = "spark.driver.extraJavaOptions"
DEFAULT_OPTIONS: Final = "spark.driver.defaultJavaOptions"
OF_EXECUTORS: Final = "spark.executor.defaultJavaOptions"
LATE_OPTIMIZING: Final = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Thresholds of Java's optimizing compiler (C2), ten times its defaults. Code that plans a query stays below
them and keeps its processors; code that works on rows still passes them early. See `docs/decisions/0007`."""
PARALLEL: Final = "-XX:+UseParallelGC"
"""The collector that leaves most of the processors to the rows, and stops them for longer (`docs/decisions/0007`)."""
JAVA_VARIABLES: Final = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Variables with options that Java takes beside those of its command line."""
EVENTS: Final = "spark.eventLog.dir"
HADOOP: Final = "spark.hadoop."
FILE_SYSTEMS: Final = {"gs": "hadoop-gcp", "abfs": "hadoop-azure", "abfss": "hadoop-azure"}
"""The artifacts of Hadoop with the file systems of schemes, which Spark does not bring."""
S3_LOG_STORE: Final = "sparkapp.S3ConditionalPutLogStore"
"""What Delta commits with on `s3a://`, by `config/spark/spark-defaults.conf`."""
LOCAL_FILES: Final[Mapping[str, str]] = {
    "spark.hadoop.fs.file.impl": "sparkapp.JavaLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "sparkapp.JavaLocalFileSystem$Fs",
}
"""Local files without a process for each. Other masters may have executors without the jar (`docs/decisions/0038`)."""
LOOPBACK: Final[Mapping[str, str]] = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
STOP_SECONDS: Final = 10
POLL_SECONDS: Final = 0.05
PIPELINE_ROOMS: Final = ("declarations", "engine", "execution", "quality", "spark", "warehouse")
"""Rooms that call Spark for a pipeline: the call site of an action is the line of the pipeline."""
FUNCTIONS: Final = "org.apache.spark.sql.functions"
NO_PROPERTIES: Final[Mapping[str, str]] = MappingProxyType({})


class StartingJvm:
    """A JVM of our own that starts in the background, while Python loads what a command needs.

    Without a session it ends by itself. It starts only where the jars are in place and no JVM is there yet. Otherwise,
    or if it does not come up, `start` launches one as always, and tells what hindered it.

    Attributes:
        invocation: The id of the command.
        log_file: The file that Spark's own noise is added to.
    """

    def __init__(
        self, settings: Settings, *, extra: Mapping[str, str] = NO_PROPERTIES, collector: str = PARALLEL
    ) -> None:
        """Starts it for a command with these settings; for the other arguments see `start`."""
        self.invocation = secrets.token_hex(6)
        self.log_file = log_file_of(settings, self.invocation)
        self._gateway: JavaGateway | None = None
        self._is_wanted, self._is_taken = True, False
        self._thread = Thread(target=self._launch, args=(settings, extra, collector), name="starts the JVM")
        if not _has_jvm() and are_installed():
            self._thread.start()

    def __enter__(self) -> "StartingJvm":
        """The JVM that starts."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it if no session has taken it, whether it is up or not."""
        self._is_wanted = False
        if self._is_taken or self._thread.ident is None:
            return
        self._thread.join()
        if self._gateway is not None:
            stop_jvm(self._gateway, patience=STOP_SECONDS)
        self.log_file.unlink(missing_ok=True)

    def gateway(self) -> JavaGateway | None:
        """The way to the JVM, once it has come up; None where it has not."""
        if self._thread.ident is not None:
            importlib.import_module("pyspark.testing.utils")  # Py4J's converters import it, with NumPy and pandas
            self._thread.join()
        self._is_taken = True
        return self._gateway

    def _launch(self, settings: Settings, extra: Mapping[str, str], collector: str) -> None:
        with suppress(SparkAppError, OSError):
            ensure_dir(self.log_file.parent)
            properties = _embedded(_configured(settings) | dict(extra), self.log_file, collector)
            self._gateway = launch_jvm(properties, self.log_file, is_wanted=lambda: self._is_wanted)


def start(
    settings: Settings,
    *,
    name: str,
    log_file: Path,
    extra: Mapping[str, str] = NO_PROPERTIES,
    jvm: StartingJvm | None = None,
    collector: str = PARALLEL,
    executor_options: Callable[[str], str] | None = None,
) -> SparkSession:
    """A session that is ready to work; what the JVM says is in `log_file`, never on the terminal.

    Args:
        settings: Where things are.
        name: The `spark.app.name`.
        log_file: The file that Spark's own noise is added to.
        extra: Spark properties that win over all others.
        jvm: The JVM that was started for the session, with the same settings and log file.
        collector: The option of Java for a collector; empty for Java's own.
        executor_options: Options of Java that the executors of a master get beside the configured ones.

    Raises:
        MachineError: No Java, no jars for the storage of a path, a folder that cannot be written, or a JVM that does
            not come up.
    """
    ensure_dir(log_file.parent)
    call_sites.install(str(Path(__file__).parents[1] / room) for room in PIPELINE_ROOMS)
    properties = _configured(settings)
    early = jvm.gateway() if jvm else None
    gateway = _joined(log_file) if early is None and _has_jvm() else None
    if gateway is not None:
        properties |= dict(SparkConf(_jvm=gateway.jvm).getAll())
    properties |= {"spark.app.name": name} | dict(extra)
    if executor_options is not None and (added := executor_options(properties["spark.master"])):
        properties[OF_EXECUTORS] = f"{properties.get(OF_EXECUTORS, '')} {added}".strip()
    properties[EVENTS] = _event_folder(properties.get(EVENTS, str(settings.events_path)))
    _turn_python_logs_to(log_file)
    properties.setdefault("spark.sql.warehouse.dir", settings.warehouse_path)  # or else Spark makes one where we stand
    if gateway is None:
        properties = _embedded(properties, log_file, collector)
        gateway = early or launch_jvm(properties, log_file)
    _require_storages(gateway, settings, properties)
    return _session(gateway, properties, log_file)


def _require_storages(gateway: JavaGateway, settings: Settings, properties: Mapping[str, str]) -> None:
    """Ends the JVM before anything is written, if it is to use a storage that it has no jars for.

    Raises:
        MachineError: It has none; the message says what to do.
    """
    paths = (settings.warehouse_path, settings.checkpoints_path, settings.raw_path, settings.landing_path)
    for location in (*paths, properties[EVENTS]):
        scheme = location.partition("://")[0]
        try:
            if scheme == "s3a":
                gateway.jvm.java.lang.Class.forName(S3_LOG_STORE)
            elif scheme in FILE_SYSTEMS:
                gateway.jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, _hadoop(gateway, properties))
        except Py4JJavaError as error:
            advice = _advice(gateway, scheme)
            stop_jvm(gateway, patience=STOP_SECONDS)
            raise MachineError(f"{location} needs {advice}") from error


def _hadoop(gateway: JavaGateway, properties: Mapping[str, str]) -> Any:
    """The configuration of Hadoop that the properties make."""
    configuration = gateway.jvm.org.apache.hadoop.conf.Configuration()
    for name, value in properties.items():
        if name.startswith(HADOOP):
            configuration.set(name.removeprefix(HADOOP), value)
    return configuration


def _advice(gateway: JavaGateway, scheme: str) -> str:
    if scheme == "s3a":
        command = f"{Path(sys.executable).name} -m spark_app.spark.jars s3"
        return f"the jars of S3, which are not beside Spark's own: run `{command}` with the Python of spark-app, once"
    artifact = f"org.apache.hadoop:{FILE_SYSTEMS[scheme]}:{gateway.jvm.org.apache.hadoop.util.VersionInfo.getVersion()}"
    return f"a jar that this Spark does not have: add `spark.jars.packages {artifact}` to spark-defaults.conf"


def stop(spark: SparkSession, *, patience: float = STOP_SECONDS) -> None:
    """Ends a session, and its JVM if this process started it.

    Args:
        spark: The session.
        patience: Seconds after which a JVM that does not end is killed.
    """
    gateway: Any = SparkContext._gateway
    with suppress(Py4JError, OSError):  # a JVM that has died needs no goodbye
        spark.stop()
    stop_jvm(gateway, patience=patience)


def log_file_of(settings: Settings, name: str) -> Path:
    """The file that the JVM of a session logs to."""
    return settings.logs_path / f"spark-{name}.jsonl"


def _configured(settings: Settings) -> dict[str, str]:
    return {"spark.master": "local[*]"} | settings.spark_properties


def _has_jvm() -> bool:
    """Whether spark-submit, or a notebook, has started a JVM already."""
    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in process_environment()


def _joined(log_file: Path) -> JavaGateway:
    """The JVM that is there already, with its log turned to our file."""
    gateway = SparkContext._gateway or launch_gateway()
    jvm: Any = gateway.jvm
    jvm.java.lang.System.setProperty("app.log.file", str(log_file.absolute()))
    jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(jvm.java.net.URI(_log_config()))
    return gateway


def _turn_python_logs_to(log_file: Path) -> None:
    """PySpark says on standard error, with all of Java's stack, what it then raises; so does Py4J, if it may."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())  # or else Py4J would add one for standard error
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logger = PySparkLogger.getLogger(name)
        for handler in tuple(logger.handlers):
            logger.removeHandler(handler)
            handler.close()
        logger.addHandler(logging.FileHandler(log_file, delay=True))


def _embedded(properties: Mapping[str, str], log_file: Path, collector: str) -> dict[str, str]:
    """Properties of a JVM of our own: quiet, with its classes ready; if alone on the loopback, with our local files."""
    options = [
        LATE_OPTIMIZING,
        _chosen(collector, properties),
        properties.get(OPTIONS, ""),
        f'"-Dlog4j2.configurationFile={_log_config()}"',
        f'"-Dapp.log.file={log_file.absolute()}"',
        f'"-XX:ErrorFile={log_file.absolute().parent}/java-crash-%p.log"',
        mapping_options(require_java()),
    ]
    alone = {**LOOPBACK, **LOCAL_FILES} if is_local(properties) else {}
    return alone | dict(properties) | {OPTIONS: " ".join(options).strip()}


def _chosen(collector: str, properties: Mapping[str, str]) -> str:
    """The collector, unless the user has chosen one: Java does not start with two."""
    environment = process_environment()
    given = [properties.get(name, "") for name in (OPTIONS, DEFAULT_OPTIONS)]
    given += [environment.get(name, "") for name in JAVA_VARIABLES]
    return "" if any("GC" in options for options in given) else collector


def _log_config() -> str:
    return (config_folder() / "spark" / "log4j2.properties").as_uri()


def _end_servers_sooner() -> None:
    """The server of accumulators, for which the end of a session waits, looks for its end twice a second by default."""
    often = partialmethod(BaseServer.serve_forever, poll_interval=POLL_SECONDS)
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.serve_forever = often  # type: ignore[method-assign, assignment]


def _keep_resolved(jvm: Any) -> None:
    """Keeps the classes and methods of Java that PySpark looks up for each column of a plan, as if for the first time.

    For a class without its package, such as `functions`, Java looks into all jars each time.
    """
    functions, utilities = getattr(jvm, FUNCTIONS), jvm.PythonUtils
    for name, value in ((FUNCTIONS, functions), ("functions", functions), ("PythonUtils", utilities)):
        setattr(jvm, name, value)
    for owner, name in ((functions, "col"), (functions, "lit"), (utilities, "toSeq")):
        setattr(owner, name, getattr(owner, name))


def _session(gateway: JavaGateway, properties: Mapping[str, str], log_file: Path) -> SparkSession:
    conf = SparkConf(_jvm=gateway.jvm).setAll(list(properties.items()))
    _end_servers_sooner()
    try:
        context = SparkContext(conf=conf, gateway=gateway)
        context.pythonExec = sys.executable
        _keep_resolved(gateway.jvm)
        return SparkSession(context)
    except BaseException as error:
        cause = str(error.java_exception.toString()).splitlines()[0] if isinstance(error, Py4JJavaError) else None
        stop_jvm(gateway, patience=STOP_SECONDS)
        if cause is None:
            raise
        raise MachineError(f"Spark did not start: {cause}; see {log_file}") from error


def _event_folder(folder: str) -> str:
    """The folder of event logs as Spark wants it: there already, and absolute if it is on this machine."""
    here = local_path(folder)
    return folder if here is None else ensure_dir(here.absolute()).as_uri()
