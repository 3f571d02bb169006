"""Records an event log of `job.py` with each Spark that is read: `python -m tests.eventlogs.record [VERSION]...`.

Each PySpark goes to an environment of its own in a temporary folder; nothing of it stays.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
VERSIONS: Final = ("3.5.9", "4.0.5", "4.1.4", "4.2.0", "4.3.0")
LAYOUTS: Final = {
    "plain": {"spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"},
    "rolled-zstd": {
        "spark.eventLog.compress": "true",
        "spark.eventLog.compression.codec": "zstd",
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "10m",
    },
}


def main(versions: list[str]) -> None:
    """Records some versions, or all."""
    for version in versions or VERSIONS:
        with tempfile.TemporaryDirectory() as scratch:
            record(version, Path(scratch))


def record(version: str, scratch: Path) -> None:
    """Replaces the recorded logs of one version."""
    uv = Path(sys.executable).parent / "uv"
    python = scratch / "venv" / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, scratch / "venv"], check=True)
    needed = [f"pyspark=={version}", *(["setuptools"] if version < "4" else [])]
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *needed], check=True)
    kept = HERE / version
    shutil.rmtree(kept, ignore_errors=True)
    for layout, properties in LAYOUTS.items():
        (kept / layout).mkdir(parents=True)
        conf = scratch / layout
        conf.mkdir()
        lines = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": (kept / layout).as_uri()} | properties
        lines |= {"spark.master": "local[2,2]", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "3"}
        text = "".join(f"{key} {value}\n" for key, value in lines.items())
        (conf / "spark-defaults.conf").write_text(text, encoding="utf-8")
        environment = {**os.environ, "SPARK_CONF_DIR": str(conf), "PYSPARK_PYTHON": str(python)}
        subprocess.run([python, HERE / "job.py", scratch / "out"], env=environment, check=True)
        sys.stdout.write(f"{version} {layout}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
