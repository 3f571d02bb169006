"""Copies of tasks that Spark takes for slow: on two hosts, since a copy runs on another host than its task."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark import InheritableThread
from pyspark.sql import functions as F

from truth.programs.common import digest, done, hashed, main, place, session

HOSTS: Final = ("127.0.0.1", "127.0.0.2")
EAGER: Final = {
    "speculation": "true",
    "speculation_quantile": "0.5",
    "speculation_multiplier": "1.1",
    "speculation_minTaskRuntime": "100ms",
}
_URL: Final = re.compile(r"Starting Spark master at (spark://\S+)")


def speculation(*, planted: bool, form: str, shops: int = 8, rows: int = 120_000) -> None:
    """Figures of some shops at once, each in two tasks of which one has more to do; somebody lets Spark copy it."""
    with ExitStack() as stack:
        master = stack.enter_context(_cluster(Path("cluster")))
        ready = {"scheduler_minRegisteredResourcesRatio": "1", "scheduler_maxRegisteredResourcesWaitingTime": "60s"}
        own = {"master": master, "executor_memory": "512m", "executor_cores": "1"}
        spark = session("shops", **(own | ready | (EAGER if planted else {})))
        sales = spark.range(0, rows, 1, 2)
        sales.createOrReplaceTempView("sales")
        much, little = digest("id", 18), digest("id", 6)

        def figures(shop: int) -> None:
            if form == "rdd":
                numbers = spark.sparkContext.range(0, rows * 2, 1, 2)
                numbers.map(lambda sale: hashed(sale + shop, 25 if sale < rows else 75)).sum()
            elif form == "sql":
                some = spark.sql(f"SELECT id FROM sales WHERE id <> {shop}")
                done(some.select(F.when(F.col("id") < rows // 2, little).otherwise(much)))
            else:
                done(sales.where(F.col("id") != shop).select(F.when(F.col("id") < rows // 2, little).otherwise(much)))

        with place(spark):
            threads = [InheritableThread(target=figures, args=(shop,), session=spark) for shop in range(shops)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        spark.stop()


@contextmanager
def _cluster(folder: Path) -> Iterator[str]:
    """The address of the master of a standalone cluster with a core on each host."""
    folder.mkdir()
    with ExitStack() as stack:
        log = folder / "master.log"
        stack.enter_context(_daemon(log, "master.Master", "--host", HOSTS[0], "--port", "0"))
        while (found := _URL.search(log.read_text(encoding="utf-8"))) is None:
            time.sleep(0.1)
        for host in HOSTS:
            own = ["--host", host, "--cores", "1", "--memory", "1g", "--work-dir", str(folder.absolute() / "work")]
            stack.enter_context(_daemon(folder / f"{host}.log", "worker.Worker", *own, found[1]))
        yield found[1]


@contextmanager
def _daemon(log: Path, name: str, *command: str) -> Iterator[None]:
    home = Path(pyspark.__file__).parent
    own: dict[str, Any] = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_HOSTNAME"}
    own |= {"SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1"}
    own |= {"SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    whole = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *command, "--webui-port", "0"]
    with log.open("wb") as said:
        process = subprocess.Popen(whole, env=own, stdout=said, stderr=said)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main(speculation)
