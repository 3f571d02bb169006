"""Records the application whose lineage is tested: `python -m tests.eventlogs.record_sources`.

It reads and writes Delta tables, files, a database over JDBC and a Kafka broker. Kept is what is read of its log,
without the names of the machine.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.eventlogs.record import scrubber
from tests.eventlogs.record_diagnoses import PROJECT, pack
from tests.kafka import running_broker

RECORDED: Final = Path(__file__).parent / "sources.zst"
BROKER: Final = "kafka.example:9092"
"""The recorded address of the broker."""


def main() -> None:
    """Replaces the recorded log."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, broker_folder = Path(scratch, "home"), Path(scratch, "broker")
        folder.mkdir()
        broker_folder.mkdir()
        with running_broker(broker_folder) as broker:
            for topic in ("clicks", "copies"):
                broker.create(topic)
            environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
            command = [sys.executable, "-m", "tests.eventlogs.sources", str(folder), broker.servers]
            subprocess.run(command, cwd=PROJECT, env=environment, check=True)
        names = {str(folder): "/shop", broker.servers: BROKER, str(PROJECT): "/project", sys.base_prefix: "/python"}
        pack(folder / "events", RECORDED, scrubber(names))


if __name__ == "__main__":
    main()
