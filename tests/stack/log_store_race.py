"""A driver that commits versions of tables when it is told: for each line on standard input it prints won or lost.

`python log_store_race.py PROPERTY=VALUE...`, and then lines of `CLASS ENDPOINT TABLE VERSION`.
"""

import functools
import os
import sys
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

LOST = "java.nio.file.FileAlreadyExistsException"
"""What Delta asks of a log store that finds a version there."""


def main(properties: Sequence[str]) -> None:
    """Commits the versions, in a JVM without a session."""
    given = dict(each.split("=", 1) for each in properties)
    jvm = launch_gateway(SparkConf(loadDefaults=False).setAll(list(given.items()))).jvm

    @functools.cache
    def opened(name: str, endpoint: str) -> tuple[Any, Any]:
        hadoop = jvm.org.apache.hadoop.conf.Configuration()
        for key, value in (given | {"spark.hadoop.fs.s3a.endpoint": endpoint}).items():
            hadoop.set(key.removeprefix("spark.hadoop."), value)
        return functools.reduce(getattr, name.split("."), jvm)(hadoop), hadoop

    answer("ready")
    for line in sys.stdin:
        name, endpoint, table, version = line.split()
        store, hadoop = opened(name, endpoint)
        file = jvm.org.apache.hadoop.fs.Path(f"{table}/_delta_log/{int(version):020}.json")
        actions = jvm.java.util.List.of(f"{os.getpid()}")
        try:
            store.write(file, actions.iterator(), False, hadoop)
            answer("won")
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() != LOST:
                raise
            answer("lost")


def answer(word: str) -> None:
    """Prints a word at once."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
