"""The only place that builds a SparkSession, and the only one that ends it.

Every word of Spark goes to one log file: log4j as JSON lines (`config/spark/log4j2.properties`), the rest as it comes.
"""

import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import Observation, SparkSession, functions

from app.errors import MachineError
from app.folders import local, made
from app.java.class_data import class_data_archive
from app.java.jvm import is_local, launched, release
from app.java.runtime import require_java
from app.settings import Settings, config_folder, load_settings, process_environment

OPTIONS: Final = "spark.driver.extraJavaOptions"
EVENTS: Final = "spark.eventLog.dir"
STOP_SECONDS: Final = 10
REHEARSAL_SECONDS: Final = 300
REHEARSAL: Final = """
    INSERT OVERWRITE DIRECTORY '{folder}/raw' USING json OPTIONS (compression 'gzip')
        SELECT string(id % 900) key, decimal(id) amount, timestamp_seconds(id) at, string(id % 3) kind FROM range(1000);
    CREATE TEMPORARY VIEW latest AS SELECT key, amount, at, kind FROM (
        SELECT *, row_number() OVER (PARTITION BY key ORDER BY at DESC) place FROM json.`{folder}/raw`) WHERE place = 1;
    CREATE TABLE delta.`{folder}/days` (key string, amount decimal(12, 2), at timestamp, kind string)
        USING delta PARTITIONED BY (kind);
    MERGE INTO delta.`{folder}/days` days USING latest ON days.key = latest.key AND days.at <= latest.at
        WHEN MATCHED AND days.amount > 0 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
    MERGE INTO delta.`{folder}/days` days USING latest ON days.key = latest.key AND days.at <= latest.at
        WHEN MATCHED AND days.amount > 0 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
    SELECT kind, count(*), sum(days.amount), avg(latest.amount), count(DISTINCT key)
        FROM delta.`{folder}/days` days JOIN latest USING (key, kind) GROUP BY kind;
    DESCRIBE HISTORY delta.`{folder}/days`
    """
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def start(settings: Settings, *, name: str, log_file: Path, extra: Mapping[str, str] = NOTHING) -> SparkSession:
    """A session that is ready to work; what the JVM says is in `log_file`, never on the terminal.

    Args:
        settings: Where things are.
        name: The `spark.app.name`.
        log_file: The file that Spark's own noise is added to.
        extra: Spark properties that win over all others.

    Raises:
        MachineError: No Java, a folder that cannot be written, or a JVM that does not come up.
    """
    made(log_file.parent)
    _turn_python_logs_to(log_file)
    properties = {"spark.master": "local[*]"} | settings.spark_properties
    gateway = _joined(log_file) if _has_jvm() else None
    if gateway is not None:
        properties |= dict(SparkConf(_jvm=gateway.jvm).getAll())
    properties |= {"spark.app.name": name} | dict(extra)
    properties[EVENTS] = _event_folder(properties.get(EVENTS, str(settings.events_path)))
    properties.setdefault("spark.sql.warehouse.dir", settings.warehouse_path)  # or else Spark makes one where we stand
    if gateway is None:
        properties = _embedded(properties, log_file)
        gateway = launched(properties, log_file)
    return _session(gateway, properties, log_file)


def stop(spark: SparkSession, *, patience: float = STOP_SECONDS) -> None:
    """Ends a session, and its JVM if this process started it.

    Args:
        spark: The session.
        patience: Seconds after which a JVM that does not end is killed.
    """
    gateway: Any = SparkContext._gateway
    with suppress(Py4JError, OSError):  # a JVM that has died needs no goodbye
        spark.stop()
    release(gateway, patience=patience)


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


def _embedded(properties: Mapping[str, str], log_file: Path) -> dict[str, str]:
    """Properties of a JVM of our own: quiet, on the loopback if it is alone, with its classes ready."""
    options = [
        properties.get(OPTIONS, ""),
        f'"-Dlog4j2.configurationFile={_log_config()}"',
        f'"-Dapp.log.file={log_file.absolute()}"',
        f'"-XX:ErrorFile={log_file.absolute().parent}/java-crash-%p.log"',
    ]
    archive = class_data_archive(require_java())
    if archive is not None:
        options.append(f'"-XX:SharedArchiveFile={archive}"')
    alone = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} if is_local(properties) else {}
    return alone | dict(properties) | {OPTIONS: " ".join(options).strip()}


def _log_config() -> str:
    return (config_folder() / "spark" / "log4j2.properties").as_uri()


def _session(gateway: JavaGateway, properties: Mapping[str, str], log_file: Path) -> SparkSession:
    conf = SparkConf(_jvm=gateway.jvm).setAll(list(properties.items()))
    try:
        context = SparkContext(conf=conf, gateway=gateway)
        context.pythonExec = sys.executable
        return SparkSession(context)
    except BaseException as error:
        cause = str(error.java_exception.toString()).splitlines()[0] if isinstance(error, Py4JJavaError) else None
        release(gateway, patience=STOP_SECONDS)
        if cause is None:
            raise
        raise MachineError(f"Spark did not start: {cause}; see {log_file}") from error


def _event_folder(folder: str) -> str:
    """The folder of event logs as Spark wants it: there already, and absolute if it is on this machine."""
    here = local(folder)
    return folder if here is None else made(here.absolute()).as_uri()


def rehearse(folder: Path) -> None:
    """A day in miniature, for the classes it loads: JSON to Delta, merged, joined, grouped, observed, read again."""
    settings = load_settings().model_copy(update={"home": folder})
    spark = start(settings, name="rehearsal", log_file=folder / "spark.log")
    for statement in REHEARSAL.format(folder=folder).split(";"):
        spark.sql(statement).collect()
    seen = Observation()
    days = spark.read.schema("key string, amount decimal(12,2), at timestamp, kind string").json(f"{folder}/raw")
    watched = days.observe(seen, functions.count("*").alias("rows"), functions.stddev("amount").alias("sigma"))
    watched.write.format("delta").mode("overwrite").option("replaceWhere", "kind >= '0'").save(f"{folder}/days")
    spark.read.format("delta").option("versionAsOf", 0).load(f"{folder}/days").limit(5).collect()
    stop(spark, patience=REHEARSAL_SECONDS)


if __name__ == "__main__":
    rehearse(Path(sys.argv[1]))
