"""A standalone cluster of two workers with two addresses of this machine: what Spark calls two hosts."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark

from tests.polling import poll_until

HOSTS: Final = ("127.0.0.1", "127.0.0.2")
_DEPLOY: Final = "org.apache.spark.deploy"
_URL: Final = re.compile(r"Starting Spark master at (spark://\S+)")


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The URL of the master of a cluster, whose processes do not outlive the block."""
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        own = ["--host", HOSTS[0], "--port", "0"]
        log = stack.enter_context(_daemon(folder, "master", f"{_DEPLOY}.master.Master", *own))
        poll_until(lambda: _URL.search(log.read_text(encoding="utf-8")) is not None, log.read_text)
        found = _URL.search(log.read_text(encoding="utf-8"))
        assert found is not None
        for host in HOSTS:
            own = ["--host", host, "--cores", "2", "--memory", "512m", "--work-dir", str(folder / "work")]
            stack.enter_context(_daemon(folder, host, f"{_DEPLOY}.worker.Worker", *own, found[1]))
        poll_until(lambda: log.read_text(encoding="utf-8").count("Registering worker") == len(HOSTS), log.read_text)
        yield found[1]


@contextmanager
def _daemon(folder: Path, name: str, *command: str) -> Iterator[Path]:
    home = Path(pyspark.__file__).parent
    own = {"SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1"}
    own |= {"SPARK_DAEMON_JAVA_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")}
    log = folder / f"{name}.log"
    with log.open("wb") as said:
        whole = [str(home / "bin" / "spark-class"), *command, "--webui-port", "0"]
        process = subprocess.Popen(whole, env=os.environ | own, stdout=said, stderr=said, cwd=folder)
        try:
            yield log
        finally:
            process.terminate()
            process.wait()
