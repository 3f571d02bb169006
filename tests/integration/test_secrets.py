import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.kafka import PASSWORD, USER, Broker

QUICK: Final = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
PARTS: Final = (b"sesame", b"ffne=dich", "öffne".encode(), b"\\u00f6ffne")
"""Parts of the password that are the same in JSON, HTML and Java."""


def event(number: int) -> bytes:
    """An event of a user."""
    common = {"user_id": "c-0000001", "event_type": "view", "timestamp": "2026-01-01T00:00:00.000Z", "properties": {}}
    return json.dumps({"event_id": f"e{number}"} | common).encode()


def streamed(home: Path, broker: Broker) -> subprocess.CompletedProcess[bytes]:
    """`spark-app streaming events`, which reads over TLS and logs in with SCRAM."""
    properties = home / "quick.conf"
    properties.write_text("".join(f"{name} {value}\n" for name, value in QUICK.items()), encoding="utf-8")
    kafka = broker.kafka_with_password
    variables = {
        "SPARK_APP_HOME": str(home),
        "SPARK_APP_CLUSTER": str(properties),
        "SPARK_APP_KAFKA__SERVERS": str(kafka.servers),
        "SPARK_APP_KAFKA__SECURITY_PROTOCOL": kafka.security_protocol,
        "SPARK_APP_KAFKA__SASL_MECHANISM": str(kafka.sasl_mechanism),
        "SPARK_APP_KAFKA__USERNAME": USER,
        "SPARK_APP_KAFKA__PASSWORD": PASSWORD,
        "SPARK_APP_KAFKA__TRUSTSTORE": str(kafka.truststore),
    }
    command = [sys.executable, "-m", "spark_app", "streaming", "events", "--available-now"]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, check=False)


def test_a_password_of_kafka_is_written_nowhere(broker: Broker, tmp_path: Path) -> None:
    """Not into the event log, Spark's log, traces, metrics, logs, run record, report, table, checkpoint, terminal."""
    broker.create_anew("user_events")
    broker.send("user_events", [event(number) for number in range(10)])
    done = streamed(tmp_path, broker)
    assert done.returncode == 0, done.stderr
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    kinds = {path.relative_to(tmp_path).parts[0] for path in files}
    assert {"spark-events", "logs", "runs", "reports", "data"} <= kinds
    records = [json.loads(content) for path, content in files.items() if path.name == "run.json"]
    assert [record["counts"]["read"] for record in records] == [10]
    texts = {str(path): content for path, content in files.items()} | {"stdout": done.stdout, "stderr": done.stderr}
    assert [name for name, content in texts.items() if any(part in content for part in PARTS)] == []
