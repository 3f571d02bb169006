"""Reads and writes every kind of place that lineage names: `python -m tests.eventlogs.sources FOLDER SERVERS`.

`SERVERS` is the address of a Kafka broker with the topics `clicks` and `copies`. The event log is in `FOLDER/events`.
The description of a query is the name of its case.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

PROPERTIES: Final = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.driver.memory": "1g",
}
DERBY: Final = "org.apache.derby.jdbc.EmbeddedDriver"
PASSWORD: Final = "hunter2"


@dataclass(frozen=True)
class Shop:
    """A session, the folder of its files, ten rows, and the places of its topics and its database."""

    spark: SparkSession
    folder: str
    servers: str

    @property
    def rows(self) -> DataFrame:
        """Ten rows."""
        return self.spark.range(10).withColumn("name", F.concat(F.lit("n"), "id"))

    @property
    def url(self) -> str:
        """The database, which is made by whoever connects first."""
        return f"jdbc:derby:{self.folder}/derby;create=true;user=app;password={PASSWORD}"

    @property
    def people(self) -> DeltaTable:
        """The Delta table that is known by its path."""
        return DeltaTable.forPath(self.spark, f"{self.folder}/people")

    def save(self, name: str, mode: str = "append", kind: str = "delta") -> None:
        """Writes the rows to a folder."""
        self.rows.write.format(kind).mode(mode).save(f"{self.folder}/{name}")

    def load(self, name: str, kind: str) -> None:
        """Reads the rows of a folder."""
        self.spark.read.format(kind).options(header="true", inferSchema="true").load(f"{self.folder}/{name}").collect()

    def sql(self, text: str) -> None:
        """Runs a statement; `updates` are the rows."""
        self.rows.createOrReplaceTempView("updates")
        self.spark.sql(text)

    def merge_by_path(self) -> None:
        """Updates five rows, inserts five."""
        new = self.spark.range(5, 15).withColumn("name", F.lit("new")).alias("new")
        merge = self.people.alias("old").merge(new, "old.id = new.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def jdbc(self, **options: str) -> dict[str, str]:
        """Options of a table of the database."""
        return {"url": self.url, "driver": DERBY} | options

    def read_jdbc(self, **options: str) -> DataFrame:
        """Rows of the database."""
        return self.spark.read.format("jdbc").options(**self.jdbc(**options)).load()

    def read_kafka(self) -> DataFrame:
        """Records of the topic clicks."""
        reader = self.spark.read.format("kafka").option("kafka.bootstrap.servers", self.servers)
        return reader.option("subscribe", "clicks").load()

    def write_kafka(self) -> None:
        """Sends the rows to the topic clicks."""
        writer = self.rows.selectExpr("name AS value").write.format("kafka")
        writer.option("kafka.bootstrap.servers", self.servers).option("topic", "clicks").save()

    def stream_kafka(self) -> None:
        """Copies the records of one topic to another."""
        reader = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        records = reader.option("subscribe", "clicks").option("startingOffsets", "earliest").load()
        writer = records.writeStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        writer = writer.queryName("copied").option("checkpointLocation", f"{self.folder}/checkpoint")
        writer.option("topic", "copies").trigger(availableNow=True).start().awaitTermination()


CASES: Final[dict[str, Callable[[Shop], object]]] = {
    "path append": lambda shop: shop.save("people"),
    "path overwrite": lambda shop: shop.save("people", "overwrite"),
    "path merge": lambda shop: shop.merge_by_path(),
    "path update": lambda shop: shop.people.update("id = 3", {"name": F.lit("y")}),
    "path delete": lambda shop: shop.people.delete("id = 4"),
    "path read": lambda shop: shop.load("people", "delta"),
    "catalog create": lambda shop: shop.sql("CREATE TABLE clients (id BIGINT, name STRING) USING delta"),
    "catalog insert": lambda shop: shop.sql("INSERT INTO clients SELECT * FROM updates"),
    "catalog append": lambda shop: shop.rows.write.format("delta").mode("append").saveAsTable("clients"),
    "catalog overwrite": lambda shop: shop.rows.write.format("delta").mode("overwrite").saveAsTable("clients"),
    "path merge of a table": lambda shop: shop.sql(
        f"MERGE INTO delta.`{shop.folder}/people` old USING clients ON old.id = clients.id "
        "WHEN MATCHED THEN UPDATE SET *"
    ),
    "catalog merge": lambda shop: shop.sql(
        "MERGE INTO clients old USING updates new ON old.id = new.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ),
    "catalog update": lambda shop: shop.sql("UPDATE clients SET name = 'z' WHERE id = 1"),
    "catalog delete": lambda shop: shop.sql("DELETE FROM clients WHERE id = 2"),
    "catalog read": lambda shop: shop.spark.table("clients").collect(),
    "catalog copy": lambda shop: shop.sql("CREATE TABLE copies USING delta AS SELECT * FROM clients"),
    "copy read": lambda shop: shop.spark.table("copies").collect(),
    "path delete all": lambda shop: shop.people.delete(),
    "parquet write": lambda shop: shop.save("parquet", kind="parquet"),
    "csv write": lambda shop: shop.save("csv", kind="csv"),
    "json write": lambda shop: shop.save("json", kind="json"),
    "parquet read": lambda shop: shop.load("parquet", "parquet"),
    "csv read": lambda shop: shop.load("csv", "csv"),
    "json read": lambda shop: shop.load("json", "json"),
    "parquet table": lambda shop: shop.rows.write.saveAsTable("sums", format="parquet"),
    "parquet table insert": lambda shop: shop.sql("INSERT INTO sums SELECT * FROM updates"),
    "jdbc write": lambda shop: shop.rows.write.format("jdbc").options(**shop.jdbc(dbtable="people")).save(),
    "jdbc append": lambda shop: shop.rows.write.jdbc(shop.url, "APP.PEOPLE", "append", {"driver": DERBY}),
    "jdbc read": lambda shop: shop.read_jdbc(dbtable="people").where("id > 3").collect(),
    "jdbc query": lambda shop: shop.read_jdbc(query='select "id" from people').collect(),
    "jdbc copy": lambda shop: shop.read_jdbc(dbtable="APP.PEOPLE").write.parquet(f"{shop.folder}/from-jdbc"),
    "kafka write": lambda shop: shop.write_kafka(),
    "kafka read": lambda shop: shop.read_kafka().collect(),
    "kafka copy": lambda shop: shop.read_kafka().write.parquet(f"{shop.folder}/from-kafka"),
    "kafka stream": lambda shop: shop.stream_kafka(),
}


def main(folder: str, servers: str) -> None:
    """Runs all cases, one after the other."""
    Path(folder, "events").mkdir()
    builder = SparkSession.builder.appName("shop")
    for key, value in PROPERTIES.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.eventLog.dir", f"file://{folder}/events")
    builder = builder.config("spark.driver.extraJavaOptions", f"-XX:TieredStopAtLevel=1 -Dderby.system.home={folder}")
    spark = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").getOrCreate()
    shop = Shop(spark, folder, servers)
    for name, run in CASES.items():
        spark.sparkContext.setJobDescription(name)
        run(shop)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
