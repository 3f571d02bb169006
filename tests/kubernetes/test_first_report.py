"""The commands of docs/kubernetes.md lead from an empty cluster to a report, in the order of the page."""

import json
import os
import re
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

import boto3
import pytest

from tests.kubernetes.cluster import CHART, ROOT, RUN_SECONDS, Namespace, image, run
from tests.polling import poll_until

HERE: Final = Path(__file__).parent
PAGE: Final = ROOT / "docs" / "kubernetes.md"
KEYS: Final = {"AWS_ACCESS_KEY_ID": "a-key-of-the-test", "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-test"}
"""Those of backends.yaml."""
PROGRAMS: Final = "kubectl -n|kubectl create|helm install|helm test seen|aws s3|aws s3api|spark-submit|spark-app report"
FIRST_SECONDS: Final = 600
"""What the page promises."""
BUCKET: Final = "my-bucket"
ID: Final = "spark-0123456789abcdef"
FAILS: Final = """from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate().range(10).count()
raise SystemExit(3)
"""


def commands() -> list[str]:
    """The commands that the page tells its reader to type, in blocks and in sentences; a long one is a line."""
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    written = re.findall(r"^```\w*\n(.*?)^```$|`([^`\n]+)`", text, re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block, code in written for line in (block or code).splitlines()]
    return list(dict.fromkeys(" ".join(line.split()) for line in lines if re.match(rf"(?:{PROGRAMS}) \S", line)))


@dataclass
class Reader:
    """Somebody who follows the page with a cluster and a bucket of their own.

    Attributes:
        namespace: What the page calls `jobs`.
        storage: The namespace of the S3 server, which is not Amazon's.
        endpoint: The address of that server on this machine.
        folder: What the reader's machine has: the chart, the program, the folder of reports.
        printed: What each command has printed.
    """

    namespace: Namespace
    storage: Namespace
    endpoint: str
    folder: Path
    printed: dict[str, str] = field(default_factory=dict)

    def follow(self, command: str) -> None:
        """Runs a command of the page, which succeeds."""
        self.printed[command] = self.run(command).stdout

    def run(self, command: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Runs a command with the reader's own names, and what this cluster and this storage need beside it."""
        server = run("kubectl", "config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
        own = {"https://my-cluster:6443": server, "spark-app:0.1.0": image()}
        for name, value in (own | ({ID: self.application} if ID in command else {})).items():
            command = command.replace(name, value)
        command = re.sub(r"\bjobs\b", self.namespace.name, command)
        if command.startswith("helm install"):
            command += "".join(f" --set {value}" for value in self.values)
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=os.environ | self.variables, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=RUN_SECONDS,
        )  # fmt: skip
        assert done.returncode == code, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done

    def submit(self, name: str, program: str, *settings: str) -> None:
        """Runs another program as the page runs its own."""
        [command] = [each for each in commands() if each.startswith("spark-submit")]
        self.run(f"aws s3 cp {program} s3://{BUCKET}/")
        command = command.replace("--name flights", f"--name {name}").replace("flights.py", program)
        own = "".join(f" --conf {setting}" for setting in settings)
        self.run(command.replace(" --conf", f"{own} --conf", 1))

    @property
    def application(self) -> str:
        """The id of the application."""
        [driver] = self.namespace.pods(spark_app_name="flights", spark_role="driver")
        return str(driver["metadata"]["labels"]["spark-app-selector"])

    @property
    def values(self) -> list[str]:
        """Of a cluster that has nothing that provides volumes, and of a storage that is not Amazon's."""
        repository, _, tag = image().rpartition(":")
        no_claims = [f"{name}.persistence.enabled=false" for name in ("collector", "bridge", "reports")]
        return [
            f"eventLogs.s3.endpoint={self.inside}",
            f"image.repository={repository}",
            f"image.tag={tag}",
            *no_claims,
        ]

    @property
    def inside(self) -> str:
        """The address of the S3 server in the cluster."""
        return f"http://s3.{self.storage.name}:7070"

    @property
    def variables(self) -> dict[str, str]:
        """The environment of the reader: `spark-defaults.conf` has what is about this storage and a small cluster."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        aws = {"AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"}
        return KEYS | aws | {"PATH": path, "SPARK_CONF_DIR": str(self.folder), "SPARK_APP_HOME": str(self.folder)}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A cluster without a namespace of the reader, and an S3 server with an empty bucket."""
    name, folder = f"first-{secrets.token_hex(3)}", tmp_path_factory.mktemp("reader")
    jobs, storage = Namespace(name), Namespace(f"{name}-storage")
    (folder / "charts").mkdir()
    (folder / "charts" / CHART.name).symlink_to(CHART)
    (folder / "flights.py").symlink_to(HERE / "flights.py")
    (folder / "fails.py").write_text(FAILS, encoding="utf-8")
    storage.create("baseline")
    try:
        storage.kubectl("apply", "--filename", HERE / "backends.yaml")
        storage.kubectl("rollout", "status", "deployment/s3", "--timeout=180s")
        with storage.forwarded("service/s3", 7070) as endpoint:
            keys = {key.lower(): value for key, value in KEYS.items()}
            boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys).create_bucket(Bucket=BUCKET)
            reader = Reader(jobs, storage, endpoint, folder)
            (folder / "spark-defaults.conf").write_text(
                f"spark.hadoop.fs.s3a.endpoint {reader.inside}\n"
                "spark.hadoop.fs.s3a.path.style.access true\n"
                "spark.hadoop.fs.s3a.endpoint.region us-east-1\n"
                "spark.driver.memory 512m\nspark.executor.memory 512m\n"
                "spark.kubernetes.driver.request.cores 0.1\nspark.kubernetes.executor.request.cores 0.1\n",
                encoding="utf-8",
            )
            yield reader
    finally:
        storage.delete()
        jobs.kubectl("delete", "namespace", name, "--ignore-not-found", "--timeout=120s")


def test_the_page_leads_to_a_report_in_ten_minutes(reader: Reader) -> None:
    """Each of its commands succeeds, in its order; the last ones are other ways to the same report."""
    found, began = commands(), time.monotonic()
    first = found.index("spark-app report k8s://jobs/flights")
    assert [command.partition(" ")[0] for command in found[:first]] == ["kubectl"] * 2 + ["aws"] * 2 + [
        "helm",
        "spark-submit",
    ]
    for command in found[: first + 1]:
        reader.follow(command)
    assert time.monotonic() - began < FIRST_SECONDS
    [report] = (reader.folder / "reports").glob("spark-*.html")
    assert "flights" in report.read_text(encoding="utf-8")
    for command in found[first + 1 :]:
        if "port-forward" in command:
            serves(reader, command)
        else:
            reader.follow(command)
    assert len(reader.printed) == len(found) - 1


def serves(reader: Reader, command: str) -> None:
    """The port of the reports leads to that of the application; any port of this machine does."""
    words = shlex.split(command)
    assert (words[3], words[5]) == ("port-forward", "8090:8090")
    with reader.namespace.forwarded(words[4], 8090) as address:

        def listed() -> str:
            with urlopen(Request(address, headers={"Host": "localhost:8090"}), timeout=30) as answer:
                page: bytes = answer.read()
                return page.decode()

        poll_until(lambda: reader.application in listed(), lambda: listed()[:1000], seconds=FIRST_SECONDS)


def test_a_program_that_fails_has_the_exit_code_of_its_pod(reader: Reader) -> None:
    """Its event log has the exit code 0: Spark does not know better of a Python program."""
    reader.submit("fails", "fails.py")
    printed = reader.run("spark-app report k8s://jobs/fails --json")
    [application] = json.loads(printed.stdout)["applications"]
    assert application["summary"] == "failed with exit code 3"
    assert "Kubernetes says of the driver: Error: exit code 3" in application["remarks"]


def test_executors_that_do_not_start_are_told_with_the_reason(reader: Reader) -> None:
    """While they are pending; the event log is not on S3 yet, and would not have it."""
    image, waiting = "spark.kubernetes.executor.container.image", "spark.kubernetes.submission.waitAppCompletion"
    reader.submit("waits", "flights.py", f"{image}=spark-app:no-such-tag", f"{waiting}=false")

    def said() -> str:
        return reader.run("spark-app report k8s://jobs/waits", code=3).stderr

    wanted = re.compile(
        r"Kubernetes says of [12] executors?: (?:ErrImagePull|ImagePullBackOff): .*spark-app:no-such-tag"
    )
    poll_until(lambda: wanted.search(said()) is not None, said, seconds=FIRST_SECONDS)
    reader.namespace.kubectl("delete", "pods", "--selector=spark-app-name=waits", "--wait=false")
