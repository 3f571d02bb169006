"""Records the programs of `connect`: `python -m tests.eventlogs.record_connect [LOG]...`.

`local` is one program with a server in its own JVM, `server` a server that five clients share, `pipeline` what
`spark-pipelines run` starts, and a version of Spark a server of it with two clients, in an environment of its own. Kept
is what is read of each log, without the names of the machine.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import zstandard

from tests.eventlogs import record
from tests.eventlogs.record_diagnoses import PROJECT, needed
from tests.polling import poll_until

RECORDED: Final = Path(__file__).parent / "connect"
LOGS: Final = ("local", "server", "pipeline")
CLIENTS: Final = (("ana", "sales"), ("ben", "sales"), ("cyd", "failing"), ("dan", "canceled"), ("ana", "failing"))
"""The users of the server, and their programs."""
VERSIONS: Final = ("3.5.7", "4.0.5", "4.1.4", "4.3.0")
"""Other versions of Spark; the logs above are of 4.2."""
CLIENTS_OF_VERSION: Final = (("ana", "sales"), ("ben", "failing"))
COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
JARS: Final = {"3.5.7": "org.apache.spark:spark-connect_2.12:3.5.7"}
"""The server where it is not among the jars of PySpark; Maven fetches it."""
CLIENT: Final = ("grpcio", "grpcio-status", "googleapis-common-protos", "pandas<3", "pyarrow", "zstandard")
"""What PySpark's client needs."""
SERVER: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
PIPELINE: Final = {
    "spark-pipeline.yml": """name: shop
storage: STORAGE
libraries:
  - glob:
      include: transformations/**
""",
    "transformations/orders.py": """from pyspark import pipelines as dp
from pyspark.sql import functions as F

@dp.materialized_view
def orders():
    return spark.range(100).withColumn("shop", F.col("id") % 3)
""",
    "transformations/totals.sql": """CREATE MATERIALIZED VIEW totals AS
SELECT shop, count(*) AS orders FROM orders GROUP BY shop;
""",
}


def main(names: list[str]) -> None:
    """Replaces some recorded logs, or all."""
    RECORDED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in names or (*LOGS, *VERSIONS):
            home = folder / name
            (home / "logs").mkdir(parents=True)
            programs = {"local": local, "server": server, "pipeline": pipeline}
            programs.get(name, server_of_version)(home, variables(home))
            keep(home, recorded(name), {str(home): "/work", str(PROJECT): "/project"})


def recorded(name: str) -> Path:
    """The file of a recorded log."""
    return RECORDED / f"{name}.zst"


def variables(home: Path) -> dict[str, str]:
    """The environment of a program, whose event log goes to a folder."""
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (home / "logs").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.connect.grpc.binding.address": "127.0.0.1",
    }
    (home / "conf").mkdir()
    text = "".join(f"{name} {value}\n" for name, value in settings.items())
    (home / "conf" / "spark-defaults.conf").write_text(text, encoding="utf-8")
    own = {"SPARK_CONF_DIR": str(home / "conf"), "PYSPARK_PYTHON": sys.executable, "SPARK_USER": "somebody"}
    own |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
    return {**os.environ, **own}


def local(home: Path, environment: Mapping[str, str]) -> None:
    """PySpark's local mode of Connect."""
    job = shutil.copy(Path(__file__).with_name("connect.py"), home)
    subprocess.run([sys.executable, job, "sales", "local[2]", home], env=environment, cwd=home, check=True)


def server(home: Path, environment: Mapping[str, str]) -> None:
    """Five clients of four users at once; the last two sessions of the same user."""
    served(home, environment, CLIENTS, python=Path(sys.executable))


def server_of_version(home: Path, environment: Mapping[str, str]) -> None:
    """A server of the Spark that the folder is named after, and two of its clients."""
    version = home.name
    python = record.installed(version, home / "venv")
    uv = Path(sys.executable).parent / "uv"
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *CLIENT], check=True)
    if version in JARS:
        (pyspark,) = (home / "venv" / "lib").glob("python*/site-packages/pyspark")
        copy = ["mvn", "-q", "-B", COPY, f"-Dartifact={JARS[version]}", f"-DoutputDirectory={pyspark / 'jars'}"]
        subprocess.run(copy, cwd=home, check=True)
    served(home, {**environment, "PYSPARK_PYTHON": str(python)}, CLIENTS_OF_VERSION, python=python)


def served(
    home: Path,
    environment: Mapping[str, str],
    programs: Sequence[tuple[str, str]],
    *,
    python: Path,
) -> None:
    """A server and its clients, each of a user."""
    job = shutil.copy(str(Path(__file__).with_name("connect.py")), home)
    with started(home, environment, python=python) as address:
        clients: list[subprocess.Popen[bytes]] = []
        for number, (user, program) in enumerate(programs):
            remote, own = f"sc://{address}/;user_id={user}", home / str(number)
            command = [str(python), str(job), program, remote, str(own)]
            clients.append(subprocess.Popen(command, env=environment, cwd=home))
        assert [client.wait() for client in clients] == [0] * len(clients)


@contextmanager
def started(home: Path, environment: Mapping[str, str], *, python: Path = Path(sys.executable)) -> Iterator[str]:
    """A server, as `start-connect-server.sh` starts it; gives its address."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    submit = str(python.with_name("spark-submit"))
    settings = [f"spark.connect.grpc.binding.port={port}", "spark.master=local[2]"]
    options = [word for setting in settings for word in ("--conf", setting)]
    command = [submit, "--class", SERVER, "--name", "Spark Connect server", *options, "spark-internal"]
    with subprocess.Popen(command, env=environment, cwd=home) as process:
        poll_until(lambda: is_open(port), lambda: f"port {port} is closed")
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def is_open(port: int) -> bool:
    """Whether something listens."""
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def pipeline(home: Path, environment: Mapping[str, str]) -> None:
    """What `spark-pipelines run` starts."""
    command = [str(Path(sys.executable).with_name("spark-pipelines")), "run"]
    subprocess.run(command, env=environment, cwd=project(home), check=True)


def project(home: Path) -> Path:
    """A folder with a declarative pipeline: two datasets, one declared in Python and one in SQL."""
    project = home / "shop"
    for name, text in PIPELINE.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text.replace("STORAGE", (home / "storage").as_uri()), encoding="utf-8")
    return project


def keep(home: Path, file: Path, names: Mapping[str, str]) -> None:
    """Writes the events of the only log of a folder to a file."""
    scrub = record.scrubber(dict(names) | {sys.base_prefix: "/python"})
    (log,) = (home / "logs").iterdir()
    content = b"".join(needed(line) for line in scrub(log.read_bytes()).splitlines())
    file.write_bytes(zstandard.ZstdCompressor(level=19).compress(content))
    sys.stdout.write(f"{file.name}: {file.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
