"""A small object on `s3a://` that is replaced only if it is still the one that was read: S3's conditional puts."""

import time
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_app.warehouse.hadoop_files import hadoop, jvm

IF_ABSENT: Final = "fs.option.create.conditional.overwrite"
IF_MATCH: Final = "fs.option.create.conditional.overwrite.etag"
ABSENT: Final = "java.io.FileNotFoundException"
CHANGED: Final = "org.apache.hadoop.fs.s3a.RemoteFileChangedException"
"""What S3A raises where an object was replaced between the look at it and its reading."""


@dataclass(frozen=True)
class Stored:
    """An object as it is stored.

    Attributes:
        etag: The store's name of this content.
        content: All of it.
        age: Seconds since it was written, by the clock of the store at that time and that of this machine now.
    """

    etag: str
    content: bytes
    age: float


@dataclass(frozen=True)
class S3Object:
    """An object of a path.

    Attributes:
        spark: The session.
        path: The path: `s3a://bucket/key`.
    """

    spark: SparkSession
    path: str

    def read(self) -> Stored | None:
        """The object; None where it does not exist."""
        while True:
            try:
                return self._read()
            except Py4JJavaError as error:
                kind = error.java_exception.getClass().getName()
                if kind == ABSENT:
                    return None
                if kind != CHANGED:
                    raise

    def write(self, content: bytes, *, over: str | None) -> str | None:
        """Writes the object if it is still the one of an ETag, or if there is none; None if another writer was faster.

        A put whose answer is lost is sent again, and refused then: what is there shows whether it was this one.

        Args:
            content: What no other writer writes.
            over: The ETag of the object that it replaces; None for the first one.

        Returns:
            The new ETag.
        """
        failure: Py4JJavaError | None = None
        try:
            self._put(content, over)
        except Py4JJavaError as error:
            failure = error
        found = self.read()
        if found is not None and found.content == content:
            return found.etag
        if failure is not None and (found.etag if found else None) == over:
            raise failure
        return None

    def _read(self) -> Stored:
        system, file = self._system()
        status = system.getFileStatus(file)
        stream = system.openFile(file).withFileStatus(status).build().get()
        try:
            content = bytes(jvm(self.spark).org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()
        return Stored(str(status.getEtag()), content, time.time() - status.getModificationTime() / 1000)

    def _put(self, content: bytes, over: str | None) -> None:
        system, file = self._system()
        builder = system.createFile(file)
        stream = (builder.must(IF_ABSENT, True) if over is None else builder.must(IF_MATCH, over)).build()
        try:
            stream.write(content)
        finally:
            stream.close()

    def _system(self) -> tuple[Any, Any]:
        file = jvm(self.spark).org.apache.hadoop.fs.Path(self.path)
        return file.getFileSystem(hadoop(self.spark)), file
