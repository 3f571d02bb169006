"""Reads an application's own settings for advice: a setting that causes a finding is named with its value.

Defaults are those of Spark 3.5 to 4.3 (`SQLConf`, `package.scala` of the core).
"""

from collections.abc import Mapping
from typing import Final

from spark_app.eventlog.model import call_sites, memory_settings
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.releases import release

ADAPTIVE: Final = "spark.sql.adaptive.enabled"
COALESCE: Final = "spark.sql.adaptive.coalescePartitions.enabled"
PARALLELISM_FIRST: Final = "spark.sql.adaptive.coalescePartitions.parallelismFirst"
SKEW_JOIN: Final = "spark.sql.adaptive.skewJoin.enabled"
SKEW_BYTES: Final = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
BROADCAST: Final = "spark.sql.autoBroadcastJoinThreshold"
PARTITIONS: Final = "spark.sql.shuffle.partitions"
PARALLELISM: Final = "spark.default.parallelism"
MEMORY_FRACTION: Final = "spark.memory.fraction"
ARROW: Final = "spark.sql.execution.arrow.pyspark.enabled"
ARROW_BY_DEFAULT: Final = (4, 2)
"""The Spark from which on `toPandas` and Python UDFs use Arrow by default."""
DECOMMISSION: Final = "spark.decommission.enabled"
SHUFFLE_SERVICE: Final = "spark.shuffle.service.enabled"
DYNAMIC: Final = "spark.dynamicAllocation.enabled"
IDLE_TIMEOUT: Final = "spark.dynamicAllocation.executorIdleTimeout"
STATE_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "RocksDBStateStoreProvider"
DEFAULTS: Final[Mapping[str, str]] = {
    ADAPTIVE: "true",
    COALESCE: "true",
    PARALLELISM_FIRST: "true",
    SKEW_JOIN: "true",
    SKEW_BYTES: "256MB",
    BROADCAST: "10MB",
    PARTITIONS: "200",
    PARALLELISM: "the number of cores",
    MEMORY_FRACTION: "0.6",
    DECOMMISSION: "false",
    SHUFFLE_SERVICE: "false",
    DYNAMIC: "false",
    memory_settings.EXECUTOR_MEMORY: memory_settings.DEFAULT,
    memory_settings.DRIVER_MEMORY: memory_settings.DEFAULT,
    IDLE_TIMEOUT: "60s",
}


def settings_of(app: Application, query: Query | None) -> Mapping[str, str]:
    """The settings that applied to a query: those of the application, and what its session has changed."""
    return app.properties if query is None else app.properties | query.settings


def is_off(settings: Mapping[str, str], name: str) -> bool:
    """Whether a switch is off; one that is not set has its default."""
    return settings.get(name, DEFAULTS[name]).strip().lower() == "false"


def now(settings: Mapping[str, str], name: str) -> str:
    """A setting with its value: `spark.sql.shuffle.partitions (now 24)`, or `(default 200)` where it is not set."""
    value = settings.get(name)
    return f"{name} (default {DEFAULTS[name]})" if value is None else f"{name} (now {value[:40]})"


def has_arrow(settings: Mapping[str, str], app: Application, name: str) -> bool:
    """Whether a switch for Arrow is on; also where the log has no version to know the default by."""
    is_default = (release(app.spark_version) or ARROW_BY_DEFAULT) >= ARROW_BY_DEFAULT
    return settings.get(name, str(is_default)).strip().lower() != "false"


def use_arrow(app: Application, query: Query | None) -> str:
    """That a query brings rows to pandas without Arrow; empty if it does not."""
    site = None if query is None else call_sites.parse(query.description)
    if site is None or site.action != "toPandas" or has_arrow(settings_of(app, query), app, ARROW):
        return ""
    where = f" at {site.file.rpartition('/')[2]}:{site.line}" if site.is_of_program else ""
    return (
        f"{ARROW} is off, so that the driver unpickles the rows of toPandas{where} one by one: set it to true, and "
        "they come as columns. "
    )


def _turned_on(name: str, gain: str) -> str:
    return f"{name} is false: set it to true, and {gain}. "


def split_skew(settings: Mapping[str, str]) -> str:
    """What keeps adaptive execution from splitting a large partition of a join."""
    gain = "Spark splits such partitions of joins"
    for name in (ADAPTIVE, SKEW_JOIN):
        if is_off(settings, name):
            return _turned_on(name, gain)
    return f"Spark splits partitions of joins only above {now(settings, SKEW_BYTES)}: lower it. "


def merge_partitions(settings: Mapping[str, str]) -> str:
    """What keeps adaptive execution from merging small partitions; empty if nothing does."""
    off = next((name for name in (ADAPTIVE, COALESCE) if is_off(settings, name)), None)
    return "" if off is None else _turned_on(off, "Spark merges small shuffle partitions")


def more_partitions(settings: Mapping[str, str], *, is_rdd: bool, has_state: bool) -> str:
    """What makes more partitions of a shuffle: settings of SQL have no effect on that of an RDD."""
    if is_rdd:
        return f"a higher {now(settings, PARALLELISM)} or numPartitions of the operation"
    if has_state:
        return f"a higher {now(settings, PARTITIONS)}, for which a query with state needs a new checkpoint"
    return f"a higher {now(settings, PARTITIONS)}, or a lower spark.sql.adaptive.advisoryPartitionSizeInBytes"


def fewer_partitions(settings: Mapping[str, str], *, is_rdd: bool) -> str:
    """What makes fewer of them."""
    if is_rdd:
        return f"a lower {now(settings, PARALLELISM)} or numPartitions of the operation"
    return f"a lower {now(settings, PARTITIONS)}, or a higher spark.sql.adaptive.advisoryPartitionSizeInBytes"


def allow_broadcast(settings: Mapping[str, str]) -> str:
    """Whether broadcasts are switched off; empty if they are not."""
    value = settings.get(BROADCAST, DEFAULTS[BROADCAST]).strip()
    if not value.startswith("-") and value != "0":
        return ""
    default = DEFAULTS[BROADCAST]
    return f"{BROADCAST} is {value}, which switches broadcasts off: remove the setting (default {default}). "


def enough_memory(settings: Mapping[str, str]) -> str:
    """Whether tasks may use little of the heap; empty if they may use as much as by default."""
    value = settings.get(MEMORY_FRACTION, DEFAULTS[MEMORY_FRACTION])
    default = DEFAULTS[MEMORY_FRACTION]
    try:
        is_low = float(value) < float(default)
    except ValueError:
        return ""
    gain = f"remove the setting (default {default}), and tasks get more memory"
    return f"{MEMORY_FRACTION} is {value}: {gain}. " if is_low else ""
