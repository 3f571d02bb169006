"""Records an event log of `job.py` with each Spark that is read: `python -m tests.eventlogs.record [VERSION]...`.

Each PySpark goes to an environment of its own in a temporary folder; nothing of it stays. What is kept is what Spark
wrote, frame by frame, without the names of the machine.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import zstandard

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
MACHINE: Final = ("System Properties", "Classpath Entries", "Hadoop Properties", "JVM Information")
"""What the log holds of the machine, and nobody here reads."""


def main(versions: list[str]) -> None:
    """Records some versions, or all."""
    for version in versions or VERSIONS:
        with tempfile.TemporaryDirectory() as scratch:
            record(version, Path(scratch))


def record(version: str, scratch: Path) -> None:
    """Replaces the recorded logs of one version."""
    python = installed(version, scratch / "venv")
    job = Path(shutil.copy(HERE / "job.py", scratch))
    shutil.rmtree(HERE / version, ignore_errors=True)
    for layout, properties in LAYOUTS.items():
        home = scratch / layout
        logs = home / "logs"
        logs.mkdir(parents=True)
        lines = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": logs.as_uri()} | properties
        lines |= {"spark.master": "local[2,2]", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "3"}
        text = "".join(f"{key} {value}\n" for key, value in lines.items())
        (home / "spark-defaults.conf").write_text(text, encoding="utf-8")
        own = {"SPARK_CONF_DIR": str(home), "PYSPARK_PYTHON": str(python), "SPARK_USER": "somebody"}
        own |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
        subprocess.run([python, job, home / "out"], env=os.environ | own, cwd=home, check=True)
        keep(logs, HERE / version / layout, scrubber({str(scratch): "/work", sys.base_prefix: "/python"}))
        sys.stdout.write(f"{version} {layout}\n")


def installed(version: str, folder: Path) -> Path:
    """The Python of a new environment with one PySpark."""
    uv, python = Path(sys.executable).parent / "uv", folder / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    needed = [f"pyspark=={version}", *(["setuptools"] if version < "4" else [])]
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *needed], check=True)
    return python


def scrubber(names: dict[str, str]) -> Callable[[bytes], bytes]:
    """Takes the names of the machine out of some whole lines."""
    names = names | {socket.gethostname(): "localhost"}

    def scrub(lines: bytes) -> bytes:
        for name, neutral in names.items():
            lines = lines.replace(name.encode(), neutral.encode())
        return b"".join(without_machine(line) for line in lines.splitlines(keepends=True))

    return scrub


def without_machine(line: bytes) -> bytes:
    """A line without what it says of the machine."""
    if not line.startswith(b'{"Event":"SparkListenerEnvironmentUpdate"'):
        return line
    decoded = json.loads(line)
    return json.dumps(decoded | {key: {} for key in MACHINE}, separators=(",", ":")).encode() + b"\n"


def keep(logs: Path, kept: Path, scrub: Callable[[bytes], bytes]) -> None:
    """Copies recorded files: those of zstd with their frames, each of which Spark ends with a line; others packed."""
    for file in sorted(path for path in logs.rglob("*") if path.is_file() and not path.name.startswith(".")):
        there = kept / file.relative_to(logs)
        there.parent.mkdir(parents=True, exist_ok=True)
        content, zstd = file.read_bytes(), zstandard.ZstdCompressor(level=19)
        if file.suffix == ".zstd":
            there.write_bytes(b"".join(zstd.compress(scrub(frame)) for frame in frames(content)))
        elif content:
            there.with_name(f"{there.name}.zst").write_bytes(zstd.compress(scrub(content)))
        else:
            there.touch()


def frames(content: bytes) -> Iterator[bytes]:
    """What is in each frame of a zstd file."""
    while content:
        frame = zstandard.ZstdDecompressor().decompressobj()
        yield frame.decompress(content)
        content = frame.unused_data


if __name__ == "__main__":
    main(sys.argv[1:])
