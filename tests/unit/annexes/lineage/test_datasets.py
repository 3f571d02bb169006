import pytest

from spark_app.annexes.lineage.datasets import (
    Column,
    Dataset,
    inputs,
    of_location,
    of_stream,
    of_target,
    read_columns,
    written_columns,
)
from spark_app.eventlog.model.operators import Operator
from spark_app.eventlog.model.targets import Target


def scan(name: str, location: str | None = None, schema: str = "") -> Operator:
    """A scan as Spark logs it."""
    metadata = {"ReadSchema": schema} | ({} if location is None else {"Location": location})
    return Operator(name, "", {}, metadata)


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        ("/data/orders/", "file", "/data/orders"),
        ("file:/data/orders", "file", "/data/orders"),
        ("file:///data/orders", "file", "/data/orders"),
        ("s3a://shop/raw/orders", "s3://shop", "raw/orders"),
        ("s3://shop", "s3://shop", "/"),
        ("gs://shop/orders", "gs://shop", "orders"),
        ("hdfs://name:8020/orders", "hdfs://name:8020", "/orders"),
        ("abfss://raw@shop.dfs.core.windows.net/orders", "abfss://raw@shop.dfs.core.windows.net", "orders"),
        ("/data/orders/part-00001-170c9485-3fb2-40de-b3fb-878f3ecc7e92-c000.csv", "file", "/data/orders"),
        ("s3a://shop/orders/day=1/hour=2/part-00001-170c9485-3fb2.c000.parquet", "s3://shop", "orders"),
        ("/data/orders/day=2024-01-01", "file", "/data/orders"),
        ("/data/orders/part-of-it.csv", "file", "/data/orders/part-of-it.csv"),
    ],
)
def test_a_place_is_named_as_openlineage_names_it(location: str, namespace: str, name: str) -> None:
    """So that what one program writes and another one reads is one dataset: the table, not a part file of it."""
    assert of_location(location) == Dataset(namespace, name)


@pytest.mark.parametrize(
    ("target", "dataset"),
    [
        (Target("a", path="/w/a", table="default.a"), Dataset("file", "/w/a", table="default.a")),
        (Target("default.a", table="default.a"), Dataset("prod", "default.a")),
        (Target("clicks", broker="kafka-1:9092"), Dataset("kafka://kafka-1:9092", "clicks")),
        (Target("clicks"), None),
        (Target("APP.PEOPLE"), None),
    ],
)
def test_what_is_written_has_a_name_that_others_know(target: Target, dataset: Dataset | None) -> None:
    """A table of a database or a topic whose server the log does not name is left out."""
    assert of_target(target, "prod") == dataset


@pytest.mark.parametrize(
    "location", ["s3a://AKIA1:hunter2@shop/orders", "/data/password=hunter2/x", "t.password=hunter2"]
)
def test_a_secret_in_a_place_is_masked(location: str) -> None:
    """Access keys may stand before the bucket."""
    assert "hunter2" not in str(of_location(location))


def test_a_scan_of_files_reads_each_of_its_paths() -> None:
    """But for those that Spark left out of a long list, and for the log of a Delta table."""
    location = "InMemoryFileIndex(4 paths)[file:/a, s3a://b/c, file:/t/_delta_log/0.json, ...]"
    (first, second) = inputs(scan("Scan parquet db.t", location, "struct<id:int>"), "prod")
    assert (first, second) == (
        Dataset("file", "/a", (Column("id", "int"),), "db.t"),
        Dataset("s3://b", "c", (Column("id", "int"),), "db.t"),
    )


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("BatchScan spark_catalog.db.orders", ["db.orders"]),
        ("BatchScan lake.db.orders", ["lake.db.orders"]),
        ("Scan hive spark_catalog.db.orders", ["db.orders"]),
        ("LocalTableScan", []),
        ("Scan ExistingRDD", []),
        ("Scan JDBCRelation(public.orders) [numPartitions=1]", []),
    ],
)
def test_a_table_without_paths_is_one_of_the_catalog(name: str, tables: list[str]) -> None:
    """What has no name that other programs know is left out: nobody knows the database of a JDBC table."""
    assert [dataset.name for dataset in inputs(scan(name), "prod")] == tables


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("FileStreamSource[file:/in]", "/in"),
        ("DeltaSource[s3a://shop/orders]", "orders"),
        ("FileSink[/out]", "/out"),
        ("DeltaSink[/out]", "/out"),
        ("KafkaV2[Subscribe[clicks]]", None),
        ("RatePerMicroBatchStream[rowsPerBatch=1]", None),
        ("ForeachBatchSink", None),
    ],
)
def test_a_source_or_sink_of_a_stream_with_a_path_is_a_dataset(description: str, name: str | None) -> None:
    """The log has no address of Kafka."""
    found = of_stream(description)
    assert (found and found.name) == name


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        ("struct<name:string,sum(id):bigint>", [("name", "string"), ("sum(id)", "bigint")]),
        (
            "struct<a:struct<b:int,c:array<string>>,d:decimal(10,2),e:map<string,int>>",
            [("a", "struct<b:int,c:array<string>>"), ("d", "decimal(10,2)"), ("e", "map<string,int>")],
        ),
        ("struct<a:int,... 3 more fields>", []),
        ("struct<>", []),
        ("", []),
    ],
)
def test_columns_that_are_read_have_their_types(schema: str, columns: list[tuple[str, str]]) -> None:
    """None of a schema that Spark has cut: a part would look like all."""
    assert [(column.name, column.type) for column in read_columns(schema)] == columns


@pytest.mark.parametrize(
    ("arguments", "columns"),
    [
        ("file:/out, false, Parquet, [path=/out], Overwrite, [name, sum(id)]", ["name", "sum(id)"]),
        ("file:/out, false, Parquet, [path=/out], Overwrite, [a, b, ... 30 more fields]", []),
        ("file:/out, false, Parquet, [path=/out], Overwrite", []),
    ],
)
def test_columns_that_are_written_have_their_names(arguments: str, columns: list[str]) -> None:
    """The types are not in the plan."""
    name = "Execute InsertIntoHadoopFsRelationCommand"
    found = written_columns(Operator(name, f"{name} {arguments}", {}, {}))
    assert found == tuple(Column(column, None) for column in columns)
