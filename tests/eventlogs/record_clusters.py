"""Records the applications of `clusters`: `python -m tests.eventlogs.record_clusters [NAME]...`.

Kept are what is read of a log, without the names of the machine, and what Spark itself counts.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import zstandard

from tests.eventlogs import clusters, standalone
from tests.eventlogs.record import scrubber
from tests.eventlogs.record_diagnoses import PROJECT, needed

RECORDED: Final = Path(__file__).parent / "clusters"


def main(names: list[str]) -> None:
    """Replaces some recorded logs, or all."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, chosen = Path(scratch), names or list(clusters.APPLICATIONS)
        for name in chosen:
            _run(folder, name)
        RECORDED.mkdir(exist_ok=True)
        scrub = scrubber({scratch: "/work", str(PROJECT): "/project", sys.base_prefix: "/python"})
        for name in chosen:
            _pack(folder / "logs" / name, recorded(name), scrub)
            shutil.copy(folder / f"{name}.json", counted(name))


def _run(folder: Path, name: str) -> None:
    with ExitStack() as stack:
        hosts = standalone.cluster(folder / f"cluster of {name}") if name in clusters.TWO_HOSTS else None
        master = stack.enter_context(hosts) if hosts else clusters.MASTER
        subprocess.run([sys.executable, clusters.__file__, str(folder), name, master], check=True)


def recorded(name: str) -> Path:
    """The log of a recorded application."""
    return RECORDED / f"{name.replace(' ', '-')}.zst"


def counted(name: str) -> Path:
    """What Spark counts of a recorded application."""
    return recorded(name).with_suffix(".json")


def _pack(logs: Path, file: Path, scrub: Callable[[bytes], bytes]) -> None:
    (log,) = (path for path in logs.iterdir() if not path.name.startswith("."))
    lines = b"".join(needed(line) for line in scrub(log.read_bytes()).splitlines())
    file.write_bytes(zstandard.ZstdCompressor(level=19).compress(lines))
    sys.stdout.write(f"{file.name}: {file.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
