from pathlib import Path

from spark_app.annexes.tune.properties_file import Property, overridden, write
from spark_app.observe.event_log_injection import Launch
from spark_app.settings import read_spark_properties

HELPS = Property("spark.sql.shuffle.partitions", "4", "small_shuffle_partitions: they are small.\nAlone: time -20 %.")


def launch(conf: Path, *arguments: str) -> Launch:
    """A launch of `spark-submit`."""
    return Launch("1", is_cluster=False, conf=conf, arguments=("org.apache.spark.deploy.SparkSubmit", *arguments))


def test_each_setting_has_its_comment_above_it(tmp_path: Path) -> None:
    """Spark reads the file."""
    write(tmp_path / "tuned.conf", ["Written by spark-app."], [HELPS], None)
    text = (tmp_path / "tuned.conf").read_text(encoding="utf-8")
    assert "they are small.\n# Alone: time -20 %.\nspark.sql.shuffle.partitions 4\n" in text
    assert read_spark_properties(tmp_path / "tuned.conf") == {"spark.sql.shuffle.partitions": "4"}


def test_the_defaults_that_the_file_replaces_are_carried_over(tmp_path: Path) -> None:
    """But not what it sets itself, nor secrets, which no file gets."""
    defaults = "spark.master local[2]\nspark.sql.shuffle.partitions 200\nspark.hadoop.fs.s3a.secret.key hunter2\n"
    (tmp_path / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
    write(tmp_path / "tuned.conf", [], [HELPS], launch(tmp_path, "job.py"))
    text = (tmp_path / "tuned.conf").read_text(encoding="utf-8")
    known = {"spark.sql.shuffle.partitions": "4", "spark.master": "local[2]"}
    assert read_spark_properties(tmp_path / "tuned.conf") == known
    assert "hunter2" not in text
    assert "# spark.hadoop.fs.s3a.secret.key is left out" in text


def test_the_file_of_the_command_is_carried_over_instead(tmp_path: Path) -> None:
    """With one, Spark ignores its defaults."""
    (tmp_path / "own.conf").write_text("spark.app.name own\n", encoding="utf-8")
    (tmp_path / "spark-defaults.conf").write_text("spark.master local[2]\n", encoding="utf-8")
    started = launch(tmp_path, "--properties-file", str(tmp_path / "own.conf"), "job.py")
    write(tmp_path / "tuned.conf", [], [HELPS], started)
    assert read_spark_properties(tmp_path / "tuned.conf").keys() == {HELPS.name, "spark.app.name"}


def test_what_the_command_sets_itself_is_named(tmp_path: Path) -> None:
    """It counts more than a file."""
    started = launch(tmp_path, "--conf", "spark.a=1", "-c", "spark.b=2", "job.py")
    assert overridden(["spark.b", "spark.c"], started) == ["spark.b"]
