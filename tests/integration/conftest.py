from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.home import Home
from tests.kafka import Broker, running_broker


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
