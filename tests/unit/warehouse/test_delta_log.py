from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_app.spark.job_properties import setting
from spark_app.warehouse.delta_log import Commit, commit_with_retry, history


def test_writers_of_the_same_rows_at_once_all_end_well(spark: SparkSession, tmp_path: Path) -> None:
    """Who is in another's way tries again; each has a commit of its own, and the last one's rows remain."""
    path, together = str(tmp_path), Barrier(3)
    notes: list[str] = []
    spark.range(1).write.format("delta").save(path)

    def written(author: str) -> Commit:
        def write(tag: str) -> None:
            rows = spark.range(int(author), int(author) + 1)
            writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", "id >= 0")
            if tag.endswith("#1"):
                together.wait()
            writer.option("userMetadata", tag).save(path)

        return commit_with_retry(spark, path, write, author=author, note=notes.append)

    with ThreadPoolExecutor(3) as threads:
        commits = list(threads.map(written, ("1", "2", "3")))
    assert sorted(commit.version for commit in commits) == [1, 2, 3]
    last = max(commits, key=lambda commit: commit.version)
    assert [row.id for row in spark.read.format("delta").load(path).collect()] == [int(str(last.tag)[0])]
    assert all(note == f"another writer was faster at {path}: trying again" for note in notes)


def test_a_commit_wrote_the_rows_that_it_inserted_or_updated(spark: SparkSession, tmp_path: Path) -> None:
    """Not those that it copied to new files, which are nearly all of a table that a merge changes a little."""
    path, hundred = str(tmp_path), spark.range(100).withColumn("name", F.lit("old"))
    hundred.coalesce(1).write.format("delta").save(path)
    table, new = DeltaTable.forPath(spark, path), spark.range(97, 102).withColumn("name", F.lit("new"))
    merge = table.alias("old").merge(new.alias("new"), "old.id = new.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    table.update("id < 7", {"name": F.lit("newer")})
    table.delete("id < 9")
    writer = spark.range(50, 60).withColumn("name", F.lit("replaced")).write.format("delta").mode("overwrite")
    writer.option("replaceWhere", "id >= 50 and id < 70").save(path)
    table.optimize().executeCompaction()
    commits = [(commit.operation, commit.rows) for commit in history(spark, path)][::-1]
    assert commits == [("WRITE", 100), ("MERGE", 5), ("UPDATE", 7), ("DELETE", 0), ("WRITE", 10), ("OPTIMIZE", 0)]


def test_a_commit_without_metrics_wrote_all_rows_of_its_files(spark: SparkSession, tmp_path: Path) -> None:
    """Where `spark.databricks.delta.history.metricsEnabled` is off."""
    with setting(spark, "spark.databricks.delta.history.metricsEnabled", "false"):
        spark.range(3).write.format("delta").save(str(tmp_path))
    [commit] = history(spark, str(tmp_path))
    assert (commit.rows, commit.records) == (3, 3)
