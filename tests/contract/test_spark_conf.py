"""What the image's Spark configuration gives to applications that know nothing of spark-app."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

from spark_app.eventlog import span_ids
from spark_app.settings import read_spark_properties
from spark_app.spark.class_data_archive import NO_RELOCATION
from spark_app.spark.java_runtime import spark_home

CONFIG: Final = Path(__file__).resolve().parents[2] / "config"
SUBMIT: Final = "org.apache.spark.deploy.SparkSubmit"
START: Final = '. "$SPARK_HOME/bin/load-spark-env.sh"; env'
VARIABLE: Final = span_ids.TRACE_ID.removeprefix("spark.executorEnv.")


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """The configuration folder of the image, as far as Spark's scripts read it."""
    shutil.copy(CONFIG / "spark" / "spark-env.sh", tmp_path)
    return tmp_path


def started(conf: Path, *arguments: str, **variables: str) -> dict[str, str]:
    """The environment of a JVM that Spark's scripts start with some arguments: its class and what follows."""
    places = {"SPARK_HOME": str(spark_home()), "SPARK_CONF_DIR": str(conf), "HOSTNAME": "spark-master"}
    environment = {"PATH": os.environ["PATH"]} | places | variables
    done = subprocess.run(
        ["bash", "-c", START, "spark-class", *arguments], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return dict(line.partition("=")[::2] for line in done.stdout.splitlines())


def test_each_launch_has_a_trace_and_a_log_file(conf: Path) -> None:
    """Executors get the trace id as a variable, which is a Spark property too; the options of the user stay."""
    ids = set()
    for arguments in ((SUBMIT, "job.py"), ("--name", "pyspark"), ()):
        environment = started(conf, *arguments, SPARK_SUBMIT_OPTS="-Dmine=1")
        trace_id = environment[VARIABLE]
        assert re.fullmatch("[0-9a-f]{32}", trace_id)
        options = shlex.split(environment["SPARK_SUBMIT_OPTS"])
        assert options[0] == "-Dmine=1"
        assert f"-D{span_ids.TRACE_ID}={trace_id}" in options
        assert f"-Dapp.log.file=/data/logs/driver-spark-master-{trace_id}.jsonl" in options
        assert environment["SPARK_CONF_DIR"] == str(conf)
        ids.add(trace_id)
    assert len(ids) == 3


def test_sessions_with_an_archive_and_daemons_are_left_alone(conf: Path) -> None:
    """A session of spark-app brings its log file and its archive, which a folder on the class path would disable."""
    archive = "spark.driver.extraJavaOptions=-Da=b -XX:SharedArchiveFile=/opt/class-data.jsa"
    own = started(conf, SUBMIT, "--conf", archive, "pyspark-shell")
    assert own["SPARK_CONF_DIR"] == f"{spark_home()}/conf"
    assert not Path(own["SPARK_CONF_DIR"]).exists()
    daemon = started(conf, "org.apache.spark.deploy.worker.Worker", "spark://spark-master:7077")
    for environment in (own, daemon):
        assert {VARIABLE, "SPARK_SUBMIT_OPTS"} & set(environment) == set()


def test_whoever_maps_the_archive_does_not_move_it() -> None:
    """As sessions of spark-app: moved, it takes 150 MB of each JVM."""
    mapped = f"{NO_RELOCATION} -XX:SharedArchiveFile=/opt/cache/"
    entry_point = CONFIG.parent / "scripts" / "kubernetes-entrypoint.sh"
    for file in (CONFIG / "spark" / "cluster.conf", CONFIG.parent / "Dockerfile", entry_point):
        text = file.read_text(encoding="utf-8")
        assert text.count(mapped) == text.count("-XX:SharedArchiveFile=") == 1, file


def test_logs_of_drivers_and_executors_carry_the_trace_id() -> None:
    """The field that the layouts write is the one that the collector reads, in the files that it follows."""
    for role in ("driver", "executor", "pod"):
        layout = (CONFIG / "spark" / f"log4j2-{role}.properties").read_text(encoding="utf-8")
        assert "layout.trace.key = trace_id\n" in layout
        assert f'layout.trace.value = "${{env:{VARIABLE}:-}}"\n' in layout
    operators = yaml.safe_load((CONFIG / "otel" / "collector.yaml").read_text())["receivers"]["file_log"]["operators"]
    parsed = [each["trace_id"]["parse_from"] for each in operators if each["type"] == "trace_parser"]
    assert parsed == ['attributes.context["mdc.trace_id"]', "attributes.trace_id"]


def test_applications_are_on_the_cluster_and_have_an_event_log() -> None:
    """Every program in every container has these defaults; what an application sets for its executors adds to them."""
    files = [CONFIG / "spark" / name for name in ("spark-defaults.conf", "cluster.conf")]
    properties = read_spark_properties(files[0]) | read_spark_properties(files[1])
    assert properties["spark.master"] == "spark://spark-master:7077"
    assert (properties["spark.eventLog.enabled"], properties["spark.eventLog.dir"]) == (
        "true",
        "file:///data/spark-events",
    )
    assert "log4j2-executor.properties" in properties["spark.executor.defaultJavaOptions"]
    assert "spark.executor.extraJavaOptions" not in properties
    dockerfile = (CONFIG.parent / "Dockerfile").read_text(encoding="utf-8")
    assert "cat config/spark/spark-defaults.conf config/spark/cluster.conf >/opt/venv/spark-conf/" in dockerfile
    assert "SPARK_CONF_DIR=/opt/venv/spark-conf" in dockerfile


def test_python_programs_in_the_image_name_the_lines_that_start_jobs() -> None:
    """The hook of `spark-app observe` is on the path of every program in every container."""
    project = CONFIG.parent
    dockerfile = (project / "Dockerfile").read_text(encoding="utf-8")
    folders = re.findall(r"python -m spark_app\.observe\.python_start (\S+)", dockerfile)
    assert folders == re.findall(r"^ENV PYTHONPATH=(\S+)", dockerfile, re.MULTILINE)
    assert len(folders) == 1
    assert [file.name for file in (project / "compose").glob("*.yml") if "PYTHONPATH" in file.read_text()] == []


@pytest.mark.parametrize(
    "option", ["kafka.sasl.jaas.config", "kafka.ssl.key.password", "kafka.ssl.keystore.key", "fs.s3a.secret.key"]
)
def test_event_logs_hold_no_secret_option(option: str) -> None:
    """Spark redacts the values of options whose names match, wherever it writes a plan."""
    pattern = read_spark_properties(CONFIG / "spark" / "spark-defaults.conf")["spark.redaction.regex"]
    assert re.search(pattern, option)
