"""An S3 server and a session that has it, for the tests of what is on S3."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests import s3
from tests.stack.s3_home import s3_session


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.Server]:
    """An S3 server; needs versitygw on PATH."""
    with s3.server(tmp_path_factory.mktemp("s3") / "server") as running:
        yield running


@pytest.fixture(scope="module")
def spark(server: s3.Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session in the place of that of all tests."""
    with s3_session(server, tmp_path_factory.mktemp("spark")) as session:
        yield session
