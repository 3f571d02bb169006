"""The entry point of the image, with programs in place of spark-submit and Java."""

import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml
from msgspec.structs import fields

from spark_app.eventlog.model import kubernetes_pods
from spark_app.eventlog.parse import events
from tests.polling import patience

ROOT: Final = Path(__file__).resolve().parents[2]
SCRIPT: Final = ROOT / "scripts" / "kubernetes-entrypoint.sh"
PROGRAM: Final = """#!/usr/bin/env bash
printf '%s\\n' "$(basename "$0")" "$@" "in $PWD"
for name in SPARK_{CONF_DIR,SUBMIT_OPTS,TRACE_ID} HOME TMPDIR LOCAL_DIRS SPARK_PYTHON_LOGS; do
    printf '%s=%s\\n' "$name" "${!name-none}"
done
exit 3
"""
SUBMIT: Final = """#!/usr/bin/env bash
sleep 60 & # an older child, as that with which the script of Spark has computed its command
other=$!
PYSPARK_GATEWAY_PORT=1 python3 -c "$CODE" &
wait $!
code=$?
kill $other
echo "Python has ended with $code"
exit $code
"""
"""Starts Python as spark-submit does, and ends with its exit code."""
FINISHES: Final = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
signal.alarm(30)
print("ready", flush=True)
signal.pause()
"""
LOG: Final = "-Dlog4j2.configurationFile=file:/app/config/spark/log4j2-pod.properties"
EXECUTOR: Final = {
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_DRIVER_URL": "spark://driver:7078",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.9",
    "SPARK_EXECUTOR_POD_NAME": "job-exec-7",
    "SPARK_JAVA_OPT_0": "-Dspark.app.name=two words",
    "SPARK_JAVA_OPT_1": "-Xmn64m",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}
"""What Spark 4.2 sets in the pod of an executor."""


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """The volumes of a pod, and the programs of the image."""
    for folder in ("bin", "conf", "local", "opt"):
        (tmp_path / folder).mkdir()
    for name in ("java", "spark-submit"):
        (tmp_path / "bin" / name).write_text(PROGRAM, encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "conf" / "..data").mkdir()
    for name in ("spark.properties", "spark.kubernetes.namespace"):
        (tmp_path / "conf" / name).touch()
    return tmp_path


def start(pod: Path, *arguments: str, folder: str | Path = "opt", **variables: str) -> list[str]:
    """The lines of the program that the entry point starts."""
    environment = {
        "PATH": f"{pod / 'bin'}:{os.environ['PATH']}",
        "HOME": str(pod / "opt"),
        "SPARK_CONF_DIR": str(pod / "conf"),
        "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.8",
        "SPARK_HOME": "/opt/venv/spark",
        "SPARK_LOCAL_DIRS": f"{pod / 'local'},/var/data/second",
    }
    command = [str(SCRIPT), *arguments]
    done = subprocess.run(
        command,
        cwd=pod / folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(60),
    )
    assert (done.returncode, done.stderr) == (3, "")
    return done.stdout.splitlines()


def test_a_command_is_executed_as_it_is_given(pod: Path) -> None:
    """The containers of Compose, and `docker run IMAGE COMMAND`, have what they had without an entry point."""
    lines = start(pod, "java", "-jar", "two words", "driver", TMPDIR=str(pod))
    assert lines[:5] == ["java", "-jar", "two words", "driver", f"in {pod / 'opt'}"]
    assert f"SPARK_CONF_DIR={pod / 'conf'}" in lines


def test_compose_adds_properties_to_those_of_the_image(pod: Path) -> None:
    """Every later command in the container has them, and a restart adds them once."""
    conf, own = pod / "venv" / "spark-conf", pod / "local" / "conf"
    conf.mkdir(parents=True)
    (conf / "spark-defaults.conf").write_text("spark.master one\n", encoding="utf-8")
    (conf / "spark-env.sh").touch()
    (pod / "two.conf").write_text("spark.master two\n", encoding="utf-8")
    for _ in range(2):
        variables = {"SPARK_OVERLAY": str(pod / "two.conf"), "SPARK_CONF_DIR": str(own)}
        lines = start(pod, "java", SPARK_HOME=str(pod / "venv" / "spark"), **variables)
        assert f"SPARK_CONF_DIR={own}" in lines
        assert (own / "spark-defaults.conf").read_text(encoding="utf-8") == "spark.master one\nspark.master two\n"
        assert (own / "spark-env.sh").exists()


def test_a_driver_that_knows_its_node_gives_it_to_the_event_log(pod: Path) -> None:
    """By the name of the variable that executors log, which the pods of the template have."""
    template = yaml.safe_load((ROOT / "config" / "spark" / "kubernetes-pod.yaml").read_text(encoding="utf-8"))
    [variable] = template["spec"]["containers"][0]["env"]
    lines = start(pod, "driver", "job.py", **{variable["name"]: "node-1"})
    assert lines[lines.index("job.py") - 1] == f"{kubernetes_pods.NODE}=node-1"
    assert f"spark.kubernetes.driverEnv.{variable['name']}" == kubernetes_pods.NODE
    assert variable["name"] == f"SPARK_EXECUTOR_ATTRIBUTE_{fields(events.ExecutorAttributes)[0].encode_name}"
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


def test_secrets_among_these_properties_are_for_their_user_only(pod: Path) -> None:
    """Of several files; those of the image may be readable by all."""
    conf, own = pod / "venv" / "spark-conf", pod / "local" / "conf"
    conf.mkdir(parents=True)
    (conf / "spark-defaults.conf").write_text("spark.master one\n", encoding="utf-8")
    for name in ("tls", "secrets"):
        (pod / name).write_text(f"spark.{name} yes\n", encoding="utf-8")
    variables = {"SPARK_OVERLAY": f"{pod / 'tls'} {pod / 'secrets'}", "SPARK_CONF_DIR": str(own)}
    start(pod, "java", SPARK_HOME=str(pod / "venv" / "spark"), **variables)
    file = own / "spark-defaults.conf"
    assert file.read_text(encoding="utf-8") == "spark.master one\nspark.tls yes\nspark.secrets yes\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_driver_is_submitted_with_a_trace(pod: Path) -> None:
    """Its executors get the id of the trace, and the options of the user come after ours."""
    ids = set()
    for _ in range(2):
        lines = start(pod, "driver", "--class", "Job", "local:///job.py", "one", SPARK_SUBMIT_OPTS="-Dmine=1")
        trace_id = next(line for line in lines if line.startswith("SPARK_TRACE_ID=")).partition("=")[2]
        assert re.fullmatch("[0-9a-f]{32}", trace_id)
        assert lines[:13] == [
            "spark-submit",
            *("--conf", "spark.driver.bindAddress=10.0.0.8"),
            *("--conf", "spark.executorEnv.SPARK_DRIVER_POD_IP=10.0.0.8"),
            *("--conf", f"spark.executorEnv.SPARK_TRACE_ID={trace_id}"),
            *("--deploy-mode", "client", "--class", "Job", "local:///job.py", "one"),
        ]
        options = next(line for line in lines if line.startswith("SPARK_SUBMIT_OPTS="))
        assert LOG in options
        assert re.fullmatch(r"SPARK_PYTHON_LOGS=/proc/\d+/fd/1", lines[-1])
        assert options.endswith(" -Dmine=1")
        ids.add(trace_id)
    assert len(ids) == 2


def submitted(pod: Path, submit: str, **variables: str) -> subprocess.Popen[str]:
    """A driver of a Python program whose spark-submit is another program."""
    (pod / "bin" / "spark-submit").write_text(submit, encoding="utf-8")
    environment = {
        "PATH": f"{pod / 'bin'}:{os.environ['PATH']}",
        "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.8",
        "SPARK_LOCAL_DIRS": str(pod / "local"),
    }
    command = [str(SCRIPT), "driver", "--class", "org.apache.spark.deploy.PythonRunner", "local:///job.py"]
    return subprocess.Popen(command, cwd=pod / "opt", env=environment | variables, stdout=subprocess.PIPE, text=True)


def test_a_python_program_gets_the_signal_and_ends_first(pod: Path) -> None:
    """The JVM that started it ends with its exit code; if that got the signal, it would not wait for its program."""
    with submitted(pod, SUBMIT, CODE=FINISHES) as driver:
        assert driver.stdout is not None
        while driver.stdout.readline() != "ready\n":
            assert driver.poll() is None
        driver.terminate()
        rest = driver.stdout.read()
    assert "Python has ended with 7\n" in rest
    assert driver.returncode == 7


def test_a_jvm_that_has_not_started_python_yet_gets_the_signal(pod: Path) -> None:
    """Nothing else would end it."""
    with submitted(pod, "#!/usr/bin/env python3\n" + FINISHES) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n"
        driver.terminate()
    assert driver.returncode == 7


def test_a_python_program_that_ends_ends_the_pod(pod: Path) -> None:
    """With its exit code."""
    with submitted(pod, SUBMIT, CODE="raise SystemExit(5)") as driver:
        assert driver.stdout is not None
        assert "Python has ended with 5\n" in driver.stdout.read()
    assert driver.returncode == 5


def test_an_executor_is_started_with_the_options_that_spark_has_set(pod: Path) -> None:
    """No folder is on its class path before the jars, or else it would start without the class-data archive."""
    lines = start(pod, "executor", **EXECUTOR)
    assert lines[0] == "java"
    options = lines[1 : lines.index("-Xms512m")]
    assert options[-2:] == ["-Dspark.app.name=two words", "-Xmn64m"]
    assert "-XX:SharedArchiveFile=/opt/cache/spark-app/class-data.jsa" in options
    assert LOG in options
    assert lines[lines.index("-cp") + 1] == f"/opt/venv/spark/jars/*:{pod / 'opt'}"
    assert "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend" in lines
    assert lines[lines.index("--podName") + 1] == "job-exec-7"
    assert lines[-1] == "SPARK_PYTHON_LOGS=none"


def test_configuration_of_the_user_is_on_the_class_path(pod: Path) -> None:
    """Also what logs, in the place of ours."""
    (pod / "conf" / "log4j2.properties").touch()
    lines = start(pod, "executor", SPARK_CLASSPATH="/opt/user.jar", **EXECUTOR)
    assert lines[lines.index("-cp") + 1] == f"{pod / 'conf'}:/opt/user.jar:/opt/venv/spark/jars/*:{pod / 'opt'}"
    assert LOG not in lines
    lines = start(pod, "driver", "local:///job.py")
    assert f"SPARK_CONF_DIR={pod / 'conf'}" in lines
    assert LOG not in "".join(lines)
    (pod / "conf" / "log4j2.properties").unlink()
    assert "SPARK_CONF_DIR=none" in start(pod, "driver", "local:///job.py")


def test_a_read_only_root_needs_no_other_volume_than_sparks(pod: Path) -> None:
    """What goes to the home, to the temporary folder or to S3 is in the first local folder of Spark."""
    lines = start(pod, "executor", HOME="/nowhere", TMPDIR="/nowhere", **EXECUTOR)
    names = ("HOME", "TMPDIR", "LOCAL_DIRS", "-Djava.io.tmpdir")
    assert {f"{name}={pod / 'local'}" for name in names} <= set(lines)
