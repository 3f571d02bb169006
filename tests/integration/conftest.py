from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from tests.integration.home import Home
from tests.kafka import Broker, running_broker

HERE: Final = Path(__file__).parent
LONGEST: Final = ("test_ml", "test_streams", "test_table_maintenance", "test_observe")
"""Modules of two minutes and more; a worker that took one last would work alone in the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Takes the longest modules first, each whole."""
    items.sort(key=lambda item: item.path.parent != HERE or item.path.stem not in LONGEST)


@pytest.fixture
def home(tmp_path: Path, spark: SparkSession) -> Home:
    """An empty home folder."""
    return Home(tmp_path / "home", spark)


@pytest.fixture(scope="module")
def new_home(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Callable[[str], Home]:
    """Makes home folders that several tests of a module look at."""
    return lambda name: Home(tmp_path_factory.mktemp(name), spark)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that listens in plain text, with TLS and SCRAM, and with TLS and certificates of clients."""
    with running_broker(tmp_path_factory.mktemp("broker"), is_secured=True) as running:
        yield running
