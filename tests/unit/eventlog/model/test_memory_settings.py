"""What is advised can be done: each setting that is named is one that Spark reads."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pyspark
import pytest

from spark_app.eventlog import comparison, diagnoses
from spark_app.eventlog.model import memory_settings
from spark_app.settings import PROJECT
from spark_app.vocabulary.spark_names import STREAM_TRIGGER

JARS: Final = Path(pyspark.__file__).parent / "jars"
CONFIG: Final = "org/apache/spark/internal/config"
DECLARED: Final = {
    "spark-core_*.jar": (
        f"{CONFIG}/package$.class",
        f"{CONFIG}/Kryo$.class",
        f"{CONFIG}/Network$.class",
        f"{CONFIG}/Python$.class",
        "org/apache/spark/SparkContext.class",
        "org/apache/spark/SparkContext$.class",
    ),
    "spark-sql-api_*.jar": ("org/apache/spark/sql/internal/SqlApiConfHelper$.class",),
    "spark-catalyst_*.jar": ("org/apache/spark/sql/internal/SQLConf$.class",),
    "spark-kubernetes_*.jar": ("org/apache/spark/deploy/k8s/Config$.class",),
    "spark-sql_*.jar": ("org/apache/spark/sql/execution/streaming/state/RocksDBConf$.class",),
}
"""The classes in which Spark 4.2 declares its settings."""
ROCKSDB: Final = "spark.sql.streaming.stateStore.rocksdb"
"""How the settings of the state in RocksDB begin; Spark declares the rest of each."""
OWN: Final = {STREAM_TRIGGER, "spark.profile.show"}
NAME: Final = re.compile(r"(?<![\w.])spark(?:\.[A-Za-z0-9_]+)+")
PAGE: Final = PROJECT / "docs" / "diagnoses.md"


@pytest.fixture(scope="module")
def declared() -> bytes:
    """The constants of those classes."""
    return b"".join(_constants())


def _constants() -> Iterator[bytes]:
    for jar, classes in DECLARED.items():
        with ZipFile(next(JARS.glob(jar))) as opened:
            yield from map(opened.read, classes)


def advised() -> list[Path]:
    """Where advice is written: all modules of both rooms, and the page about them."""
    rooms = [Path(str(room.__file__)).parent for room in (comparison, diagnoses)]
    return [PAGE, *(file for room in rooms for file in sorted(room.rglob("*.py")))]


def test_each_setting_that_is_named_is_one_of_sparks(declared: bytes) -> None:
    """A setting that does not exist is advice that nobody can follow."""
    names = {name for file in advised() for name in NAME.findall(file.read_text(encoding="utf-8"))}
    assert "spark.sql.shuffle.partitions" in names
    ends = {name: name.removeprefix(f"{ROCKSDB}.") for name in names}
    found = {name for name, end in ends.items() if re.search(re.escape(end.encode()) + rb"(?![\w.])", declared)}
    assert names - found - OWN == set()


@pytest.mark.parametrize(
    ("master", "memory"),
    [
        ("local", "spark.driver.memory"),
        ("local[4]", "spark.driver.memory"),
        ("local-cluster[2,1,1024]", "spark.executor.memory"),
        ("spark://host:7077", "spark.executor.memory"),
    ],
)
def test_one_machine_has_no_executors(master: str, memory: str) -> None:
    """There the driver runs the tasks; a cluster in one process has executors."""
    assert memory_settings.memory({"spark.master": master}) == memory


def test_a_log_without_settings_is_not_taken_for_one_machine() -> None:
    """Nobody knows; clusters are the rule."""
    assert memory_settings.memory({}) == "spark.executor.memory"
