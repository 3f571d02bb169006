from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spark_app.warehouse import hadoop_files


def test_the_names_in_a_folder_are_those_that_hadoop_lists(spark: SparkSession, tmp_path: Path) -> None:
    """Hidden entries, but not the checksums that Hadoop keeps beside the files of a local folder."""
    for name in ("00000000000000000001.json", "00000000000000000001.crc", ".part", "a b%20.json"):
        (tmp_path / name).touch()
    (tmp_path / ".00000000000000000001.json.crc").touch()
    (tmp_path / "_staged_commits").mkdir()
    names = hadoop_files.names_in(spark, str(tmp_path))
    assert names is not None
    assert sorted(names) == sorted(listed(spark, tmp_path))
    assert len(names) == 5
    assert hadoop_files.names_in(spark, tmp_path.as_uri()) == names


def test_a_folder_that_is_not_there_has_no_names(spark: SparkSession, tmp_path: Path) -> None:
    """Which is not the same as a folder with nothing in it."""
    (tmp_path / "empty").mkdir()
    assert hadoop_files.names_in(spark, str(tmp_path / "empty")) == []
    assert hadoop_files.names_in(spark, str(tmp_path / "absent")) is None


def listed(spark: SparkSession, folder: Path) -> list[str]:
    """The names that Hadoop's own file system lists."""
    path = hadoop_files.jvm(spark).org.apache.hadoop.fs.Path(str(folder))
    return [status.getPath().getName() for status in path.getFileSystem(hadoop_files.hadoop(spark)).listStatus(path)]


def test_a_file_is_replaced_whole_or_not_at_all(spark: SparkSession, tmp_path: Path) -> None:
    """A writer that fails in between leaves the old one, which readers see until then, and nothing beside it."""
    path = f"{tmp_path.as_uri()}/_periods/meters/effects.json"
    hadoop_files.write(spark, path, b"one")
    hadoop_files.write(spark, path, b"two")
    assert hadoop_files.read_text(spark, path) == "two"
    with pytest.raises(Py4JError):
        hadoop_files.write(spark, path, ["no bytes"])  # type: ignore[arg-type] # it ends while it writes
    assert hadoop_files.read_text(spark, path) == "two"
    assert hadoop_files.names_in(spark, path.rpartition("/")[0]) == ["effects.json"]
