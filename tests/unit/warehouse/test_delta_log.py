from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from pyspark.sql import SparkSession

from app.warehouse.delta_log import Commit, commit_with_retry


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
