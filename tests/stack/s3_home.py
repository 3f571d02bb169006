"""A home whose tables and checkpoints are in a bucket.

The folder of the bucket is `data/` of the home folder: what looks for files there finds the objects, and a copy of the
home folder has them, too.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest
from pyspark.sql import SparkSession

from spark_app import testing
from spark_app.settings import load_settings
from spark_app.spark import session
from tests import s3
from tests.integration.home import Home


class S3Home(Home):
    """A home with a bucket of its own."""

    def __init__(self, folder: Path, spark: SparkSession, server: s3.Server) -> None:
        """Nothing is delivered yet; the bucket has what is in its folder."""
        super().__init__(folder, spark)
        self.server = server
        (folder / "data").mkdir(exist_ok=True)
        self.bucket = server.bucket(folder / "data")
        root = f"s3a://{self.bucket}"
        places = {"warehouse": f"{root}/warehouse", "checkpoints": f"{root}/checkpoints"}
        self.settings = self.settings.model_copy(update=places)
        self.configure_spark(server.properties)

    def configure_spark(self, properties: Mapping[str, str]) -> None:
        """Sets Spark properties of the home's processes."""
        conf = self.settings.config / "spark" / "spark-defaults.conf"
        lines = conf.read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if line.partition(" ")[0] not in properties]
        new = [f"{key} {value}" for key, value in properties.items()]
        conf.write_text("\n".join([*kept, *new]) + "\n", encoding="utf-8")

    def upload(self, key: str, content: bytes) -> None:
        """Writes an object."""
        keys = {
            "aws_access_key_id": s3.KEYS["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": s3.KEYS["AWS_SECRET_ACCESS_KEY"],
        }
        client = boto3.client("s3", endpoint_url=self.server.url, region_name="us-east-1", **keys)
        client.put_object(Bucket=self.bucket, Key=key, Body=content)

    @property
    def variables(self) -> dict[str, str]:
        """With the bucket, and the keys of the server."""
        places = {"SPARK_APP_WAREHOUSE": self.settings.warehouse, "SPARK_APP_CHECKPOINTS": self.settings.checkpoints}
        return super().variables | places | s3.KEYS

    @property
    def tables(self) -> Path:
        """The folder in which objects of tables appear."""
        return self.folder / "data" / "warehouse"

    def copied(self, folder: Path) -> "S3Home":
        """A home folder with the same content, and a bucket with the same objects."""
        super().copied(folder)
        return S3Home(folder, self.spark, self.server)


@contextmanager
def s3_session(server: s3.Server, folder: Path) -> Iterator[SparkSession]:
    """A small session that has `s3a://`."""
    settings = load_settings().model_copy(update={"home": folder})
    own = server.properties | {"spark.driver.memory": "1g", "spark.sql.warehouse.dir": str(folder / "spark-warehouse")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3.KEYS.items():
            patch.setenv(name, value)
        spark = session.start(settings, name="tests", log_file=folder / "spark.jsonl", extra=testing.LIGHT | own)
        yield spark
        session.stop(spark)
