"""Records the applications that diagnoses are tested with: `python -m tests.eventlogs.record_diagnoses [FOLDER]`.

With a folder of logs that `stages` and `plans` have left, only packs them. Kept is what is read of a log, without the
names of the machine, in one compressed file for each application.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import zstandard

from spark_app.eventlog.parse import events
from tests.eventlogs import stages
from tests.eventlogs.record import scrubber

RECORDED: Final = Path(__file__).parent / "diagnoses"
PROJECT: Final = Path(__file__).parents[2]
PLANS: Final = "plans"


def main(given: str | None) -> None:
    """Replaces the recorded logs."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(given or scratch)
        if given is None:
            run(folder)
        RECORDED.mkdir(exist_ok=True)
        scrub = scrubber({str(folder): "/work", str(PROJECT): "/project", sys.base_prefix: "/python"})
        for name in stages.RECORDED:
            pack(folder / "stages" / "logs" / name, recorded(name), scrub)
        pack(folder / "plans" / "events", recorded(PLANS), scrub)


def run(folder: Path) -> None:
    """Runs all applications, one after the other."""
    for name in ("stages", "plans/events"):
        (folder / name).mkdir(parents=True)
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    of_stages = [stages.__file__, str(folder / "stages"), *stages.RECORDED]
    for arguments in (of_stages, ["-m", "tests.eventlogs.plans", str(folder / "plans")]):
        subprocess.run([sys.executable, *arguments], cwd=PROJECT, env=environment, check=True)


def recorded(name: str) -> Path:
    """The file of a recorded application."""
    return RECORDED / f"{name.replace(' ', '-')}.zst"


def pack(logs: Path, file: Path, scrub: Callable[[bytes], bytes]) -> None:
    """Writes the events of one application to a file."""
    parts = sorted(logs.glob("*/events_*"), key=lambda part: int(part.name.split("_")[1]))
    lines = b"".join(needed(line) for part in parts for line in scrub(part.read_bytes()).splitlines())
    file.write_bytes(zstandard.ZstdCompressor(level=19).compress(lines))
    sys.stdout.write(f"{file.name}: {file.stat().st_size:,} bytes\n")


def needed(line: bytes) -> bytes:
    """A line with its end, without what is not read of it: counts of single tasks; nothing of an event not read."""
    if events.event(line) is None:
        return b""
    event = json.loads(line)
    event.get("Task Info", {}).pop("Accumulables", None)
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
