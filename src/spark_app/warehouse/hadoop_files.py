"""Small files on any path that Spark can read, through Hadoop's own file systems; no Spark job."""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_app.errors import InputError
from spark_app.local_files import local_path

_CHECKSUM: Final = ".crc"
"""What the hidden checksum files of Hadoop's local file system end with."""
_RENAMING: Final = ("hdfs", "viewfs", "webhdfs", "file")
"""The schemes of file systems that replace a file by a rename, and show one that is being written."""
_HEADER_BYTES: Final = 64 * 1024


def read_text(spark: SparkSession, path: str) -> str | None:
    """The content of a small file on any path that Spark can read; None without a file."""
    file = jvm(spark).org.apache.hadoop.fs.Path(path)
    system = file.getFileSystem(hadoop(spark))
    if not system.exists(file):
        return None
    stream = system.open(file)
    try:
        return str(jvm(spark).org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def write_once(spark: SparkSession, path: str, content: bytes) -> None:
    """Writes a file that appears whole; does nothing if it exists. Its folder is created."""
    file = jvm(spark).org.apache.hadoop.fs.Path(path)
    system = file.getFileSystem(hadoop(spark))
    if system.exists(file):
        return
    part = jvm(spark).org.apache.hadoop.fs.Path(file.getParent(), f".{file.getName()}")
    _fill(system, part, content)
    system.rename(part, file)


def write(spark: SparkSession, path: str, content: bytes) -> None:
    """Replaces a small file, of which readers see the old content or the new one; its folder is created.

    A file of an object store appears when it is closed. Elsewhere it is written beside, and renamed.
    """
    files = jvm(spark).org.apache.hadoop.fs
    file = files.Path(path)
    system = file.getFileSystem(hadoop(spark))
    if system.getScheme() not in _RENAMING:
        _fill(system, file, content)
        return
    part = files.Path(file.getParent(), f".{secrets.token_hex(8)}.part")  # of this writer: another may write, too
    gateway: Any = spark.sparkContext._gateway
    options = gateway.new_array(files.Options.Rename, 1)
    options[0] = files.Options.Rename.OVERWRITE
    try:
        _fill(system, part, content)
        files.FileContext.getFileContext(file.toUri(), hadoop(spark)).rename(part, file, options)
    finally:
        system.delete(part, False)


def _fill(system: Any, file: Any, content: bytes) -> None:
    """Writes a file of a file system of Hadoop, over one that is there."""
    stream = system.create(file, True)
    try:
        stream.write(content)
    finally:
        stream.close()


class StoredFile(NamedTuple):
    """A file or a folder: its path, its name, its size in bytes, and when it was written, in ms since the epoch."""

    path: str
    name: str
    is_file: bool
    bytes: int = 0
    modified_ms: int = 0


ListFolder = Callable[[str], list[StoredFile]]
"""Lists a folder, or a file, which is itself: what is not hidden, in order of name; empty without a folder."""


def listed(spark: SparkSession, folder: str) -> list[StoredFile]:
    """What is in a folder that is not hidden; of a local folder it is what `listed_locally` says without Spark."""
    path = jvm(spark).org.apache.hadoop.fs.Path(folder)
    system = path.getFileSystem(hadoop(spark))
    if system.getUri().getScheme() == "file":
        return [file._replace(path=f"file:{file.path}") for file in _listed(Path(path.toUri().getPath()))]
    found = system.listStatus(path) if system.exists(path) else []
    return _shown(
        StoredFile(
            each.getPath().toString(),
            each.getPath().getName(),
            each.isFile(),
            each.getLen(),
            each.getModificationTime(),
        )
        for each in found
    )


def listed_locally(folder: str) -> list[StoredFile]:
    """The same of a folder of this machine, without Spark."""
    path = local_path(folder)
    return _listed(path) if path else []


def _listed(folder: Path) -> list[StoredFile]:
    if not folder.exists():
        return []
    found = [(each, each.stat()) for each in ([folder] if folder.is_file() else folder.iterdir()) if each.exists()]
    return _shown(
        StoredFile(str(each), each.name, each.is_file(), stat.st_size, stat.st_mtime_ns // 1_000_000)
        for each, stat in found
    )


def _shown(files: Iterable[StoredFile]) -> list[StoredFile]:
    return sorted((each for each in files if each.name[0] not in "._"), key=lambda each: each.name)


class FileReader(Protocol):
    """Reads small files and lists folders, with or without Spark."""

    def reaches(self, path: str) -> bool:
        """Whether it can read what is there."""

    def listed(self, folder: str) -> list[StoredFile]:
        """What is in a folder that is not hidden, or a file, which is itself; empty where there is none."""

    def text(self, path: str) -> str | None:
        """The content of a small file; None where there is none, or where it cannot be read."""


@dataclass(frozen=True)
class SparkReader:
    """Reads files on any path that Spark can read."""

    spark: SparkSession

    def reaches(self, path: str) -> bool:
        """See `FileReader`."""
        return True

    def listed(self, folder: str) -> list[StoredFile]:
        """See `FileReader`."""
        return listed(self.spark, folder)

    def text(self, path: str) -> str | None:
        """See `FileReader`."""
        return read_text(self.spark, path)


class LocalReader:
    """Reads files of this machine, without Spark."""

    def reaches(self, path: str) -> bool:
        """See `FileReader`."""
        return local_path(path) is not None

    def listed(self, folder: str) -> list[StoredFile]:
        """See `FileReader`."""
        return listed_locally(folder)

    def text(self, path: str) -> str | None:
        """See `FileReader`."""
        file = local_path(path)
        return file.read_text(encoding="utf-8") if file is not None and file.is_file() else None


def names_in(spark: SparkSession, folder: str) -> list[str] | None:
    """The names of the entries of a folder, in one request; None if the folder does not exist.

    The log of a table may have thousands: Hadoop takes half a second for those of a local folder, Python 10 ms.
    """
    path = jvm(spark).org.apache.hadoop.fs.Path(folder)
    system = path.getFileSystem(hadoop(spark))
    try:
        if system.getUri().getScheme() == "file":
            names = (entry.name for entry in Path(path.toUri().getPath()).iterdir())
            return [name for name in names if not (name.startswith(".") and name.endswith(_CHECKSUM))]
        return [status.getPath().getName() for status in system.listStatus(path)]
    except FileNotFoundError:
        return None
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() == "java.io.FileNotFoundException":
            return None
        raise


def exists(spark: SparkSession, uri: str) -> bool:
    """Whether there is a file of a URI, as `DataFrame.inputFiles` gives them."""
    path = jvm(spark).org.apache.hadoop.fs.Path(jvm(spark).java.net.URI(uri))
    return bool(path.getFileSystem(hadoop(spark)).exists(path))


def delete(spark: SparkSession, folder: str) -> None:
    """Deletes a folder with all that is in it; does nothing if it does not exist."""
    path = jvm(spark).org.apache.hadoop.fs.Path(folder)
    path.getFileSystem(hadoop(spark)).delete(path, True)


def first_line(spark: SparkSession, file: str, *, encoding: str = "UTF-8") -> str:
    """The first line of a text file, which may be compressed, that is not blank; empty without such a line.

    Raises:
        InputError: It cannot be read.
    """
    path = jvm(spark).org.apache.hadoop.fs.Path(file)
    stream = path.getFileSystem(hadoop(spark)).open(path)
    codec = jvm(spark).org.apache.hadoop.io.compress.CompressionCodecFactory(hadoop(spark)).getCodec(path)
    reader = jvm(spark).java.io.InputStreamReader(codec.createInputStream(stream) if codec else stream, encoding)
    buffered = jvm(spark).java.io.BufferedReader(reader, _HEADER_BYTES)
    try:
        while (line := buffered.readLine()) is not None:
            if line.strip():
                return str(line)
        return ""
    except Py4JJavaError as error:
        raise InputError(f"cannot read {file}: {error.java_exception.toString()}") from error
    finally:
        buffered.close()


def parquet_schema(spark: SparkSession, file: str) -> str:
    """The schema of a Parquet file, as its footer states it; no Spark job.

    Raises:
        InputError: It cannot be read.
    """
    parquet = jvm(spark).org.apache.parquet.hadoop
    path = jvm(spark).org.apache.hadoop.fs.Path(file)
    try:
        reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(path, hadoop(spark)))
    except Py4JJavaError as error:
        raise InputError(f"cannot read {file}: {error.java_exception.toString()}") from error
    try:
        return str(reader.getFileMetaData().getSchema().toString())
    finally:
        reader.close()


def orc_schema(spark: SparkSession, file: str) -> str:
    """The schema of an ORC file, as its footer states it; no Spark job.

    Raises:
        InputError: It cannot be read.
    """
    orc = jvm(spark).org.apache.orc.OrcFile
    try:
        reader = orc.createReader(jvm(spark).org.apache.hadoop.fs.Path(file), orc.readerOptions(hadoop(spark)))
    except Py4JJavaError as error:
        raise InputError(f"cannot read {file}: {error.java_exception.toString()}") from error
    try:
        return str(reader.getSchema().toString())
    finally:
        reader.close()


def jvm(spark: SparkSession) -> Any:
    """The classes of the driver's JVM."""
    return spark.sparkContext._jvm


def hadoop(spark: SparkSession) -> Any:
    """The Hadoop configuration of the session."""
    return spark.sparkContext._jsc.hadoopConfiguration()
