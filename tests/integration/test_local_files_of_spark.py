"""Files of an embedded session are made as Hadoop makes them, without a process for each."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession


@pytest.fixture
def jvm(spark: SparkSession) -> Any:
    """The JVM of the session."""
    return spark._jvm


@pytest.fixture
def configuration(spark: SparkSession) -> Any:
    """Hadoop's configuration of the session."""
    return spark._jsc.hadoopConfiguration()


def seconds_of_children(spark: SparkSession) -> float:
    """What processes that the JVM started, and that have ended, took of the processors."""
    gateway: Any = spark.sparkContext._gateway
    stat = Path(f"/proc/{gateway.proc.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, stat[13:15])) / os.sysconf("SC_CLK_TCK")


def test_no_process_is_started_for_a_file(spark: SparkSession, jvm: Any, configuration: Any, tmp_path: Path) -> None:
    """Neither for one that is made, in a new folder, nor for one that Delta or a checkpoint renames."""
    path = jvm.org.apache.hadoop.fs.Path
    system = path(tmp_path.as_uri()).getFileSystem(configuration)
    context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(system.getUri(), configuration)
    replacing = spark.sparkContext._gateway.new_array(jvm.org.apache.hadoop.fs.Options.Rename, 1)  # type: ignore[union-attr]
    replacing[0] = jvm.org.apache.hadoop.fs.Options.Rename.OVERWRITE
    before = seconds_of_children(spark)
    for number in range(30):
        file = f"{tmp_path}/{number}/file"
        system.create(path(file)).close()
        context.rename(path(file), path(f"{tmp_path}/{number}/renamed"), replacing)
    assert len(list(tmp_path.glob("*/renamed"))) == len(list(tmp_path.glob("*/.renamed.crc"))) == 30
    assert seconds_of_children(spark) - before < 0.05


@pytest.mark.parametrize(("kind", "mode"), [("file", 0o640), ("folder", 0o2755), ("folder", 0o3777), ("file", 0o4755)])
def test_permissions_are_those_of_hadoop(kind: str, mode: int, jvm: Any, configuration: Any, tmp_path: Path) -> None:
    """Also the bits of a folder for user and group, which a change leaves as they are; those of a file go."""
    of_hadoop = jvm.org.apache.hadoop.fs.LocalFileSystem()
    of_hadoop.initialize(jvm.java.net.URI("file:///"), configuration)
    ours = jvm.org.apache.hadoop.fs.Path(tmp_path.as_uri()).getFileSystem(configuration)
    assert ours.getClass().getName() == "sparkapp.JavaLocalFileSystem"
    for changed in ("750", "1777"):
        modes = []
        for number, system in enumerate((of_hadoop, ours)):
            target = tmp_path / f"{changed}-{number}"
            target.mkdir() if kind == "folder" else target.touch()
            target.chmod(mode)
            permission = jvm.org.apache.hadoop.fs.permission.FsPermission(changed)
            system.setPermission(jvm.org.apache.hadoop.fs.Path(str(target)), permission)
            modes.append(target.stat().st_mode)
        assert modes[0] == modes[1]


def test_links_are_seen(jvm: Any, configuration: Any, tmp_path: Path) -> None:
    """A link is one, with its target; a file is none, and what is not there is said not to be."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(jvm.java.net.URI("file:///"), configuration)
    status = context.getFileLinkStatus(jvm.org.apache.hadoop.fs.Path(f"{tmp_path}/link"))
    assert (status.isSymlink(), status.getSymlink().toUri().getPath()) == (True, f"{tmp_path}/file")
    assert not context.getFileLinkStatus(jvm.org.apache.hadoop.fs.Path(f"{tmp_path}/file")).isSymlink()
    assert not context.util().exists(jvm.org.apache.hadoop.fs.Path(f"{tmp_path}/none"))
