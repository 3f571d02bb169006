import random
import signal
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.trace import get_current_span
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_app import testing
from spark_app.settings import load_settings
from spark_app.spark import session
from spark_app.spark.class_data_archive import mapping_options
from spark_app.spark.java_runtime import require_java
from tests.jvm_watch import JvmWatch
from tests.unit.telemetry.memory import InMemory

LIGHT: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""Java compiles lightly. With one compiler it reserves 48 MB for code by default; streaming queries fill that."""
SILENT: Final = "-Xlog:cds*=off"
"""Java says nothing of an archive of classes that is of another Java or other jars, and starts without it."""


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell lets what it starts with `&` ignore Ctrl-C, and so would every program that a test stops with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that finds tests which only pass after, or before, another module, and those of histories."""
    parser.addoption("--module-order", type=int, metavar="SEED", help="run the test modules in a random order")
    parser.addoption(
        "--histories", type=int, default=20, metavar="NUMBER", help="random histories of days, 20 by default"
    )
    parser.addoption("--first-history", type=int, default=0, metavar="SEED", help="the seed of the first of them")


WATCH: Final = pytest.StashKey[JvmWatch]()


def pytest_configure(config: pytest.Config) -> None:
    """Fails tests whose JVM has ended."""
    config.stash[WATCH] = JvmWatch()
    config.pluginmanager.register(config.stash[WATCH])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffles the modules, each whole, by the seed; every worker gets the same order."""
    if (seed := config.getoption("--module-order")) is None:
        return
    modules = [list(module) for _, module in groupby(items, key=lambda item: item.path)]
    random.Random(seed).shuffle(modules)
    items[:] = [item for module in modules for item in module]


FIGURES: Final = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> list[str]:
    """Lines about what was measured, which a test adds; they are shown in the end, since pytest captures output."""
    return pytestconfig.stash.setdefault(FIGURES, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Shows what was measured."""
    if lines := config.stash.get(FIGURES, []):
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.line(line)


SET_BY_DELTA: Final = ("spark.databricks.delta.lastCommitVersionInSession", "spark.sql.parquet.fieldId.")
"""Properties that Delta sets in a session by itself: with its first plan, and with each commit."""


@pytest.fixture(scope="session", autouse=True)
def light_java() -> Iterator[None]:
    """Each driver of a test compiles lightly, and loads classes that are ready where `make archive` has been.

    Most drivers see a handful of rows once: compiling and loading take most of their time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", f"{LIGHT} {SILENT} {mapping_options(require_java())}")
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    """The one local session of all tests in this process: small, without an event log, otherwise as in a run."""
    folder: Path = tmp_path_factory.mktemp("spark")
    own = {"spark.driver.memory": "1g", "spark.sql.warehouse.dir": str(folder / "spark-warehouse")}
    settings = load_settings().model_copy(update={"home": folder})
    started = session.start(settings, name="tests", log_file=folder / "spark.jsonl", extra=testing.LIGHT | own)
    gateway: Any = SparkContext._gateway
    pytestconfig.stash[WATCH].watch(gateway.proc, folder / "spark.jsonl")
    yield started
    pytestconfig.stash[WATCH].close()
    session.stop(started)


@pytest.fixture(autouse=True)
def same_settings(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that leaves a setting of the shared session changed fails itself, and not one that runs hours later.

    Unsetting a property does not restore it: it puts Spark's default in the place of what the session was started with.
    """
    if "spark" not in request.fixturenames:
        yield
        return
    session: SparkSession = request.getfixturevalue("spark")
    before = settings_of(session)
    yield
    if not request.config.stash[WATCH].is_dead:
        assert settings_of(session) == before, "the test changed settings of the session that all tests share"


@pytest.fixture(scope="module", autouse=True)
def nothing_persisted(pytestconfig: pytest.Config) -> Iterator[None]:
    """A module that leaves rows persisted in the shared session fails itself, and not one that runs hours later.

    Other plans would read what was persisted, and the memory of a stream that runs for months would grow by it.
    """
    yield
    if not pytestconfig.stash[WATCH].is_dead and (session := SparkSession.getActiveSession()) is not None:
        kept = session._jsparkSession.sharedState().cacheManager()
        is_empty = kept.isEmpty()
        kept.clearCache()
        assert is_empty, "the tests of this module left rows persisted"


def settings_of(spark: SparkSession) -> list[str]:
    """The properties of a session, one `key -> value` each, fetched in one call; without what Delta sets there."""
    text: str = spark._jsparkSession.sessionState().conf().getAllConfs().mkString("\n")
    return sorted(line for line in text.splitlines() if not any(name in line for name in SET_BY_DELTA))


@pytest.fixture(autouse=True)
def no_open_telemetry() -> Iterator[None]:
    """The telemetry that a test built is closed: what it redirects does not reach the tests after it.

    A test that leaves a span current fails itself: what starts a span next would be in its trace.
    """
    before = get_current_span()
    yield
    while InMemory.opened:
        InMemory.opened.pop().telemetry.close()
    assert get_current_span() is before, "the test left a span current"
