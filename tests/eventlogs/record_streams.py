"""Records the programs of `streams`: `python -m tests.eventlogs.record_streams [PROGRAM]...`.

`every_field` runs with each Spark that is read, the others with the installed one. Kept is what is read of each log,
without the names of the machine. Says what is reported about each program.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import zstandard

from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.observe.python_start import PYTHONPATH, write_hook
from tests.eventlogs import record, streams
from tests.eventlogs.record_diagnoses import needed

RECORDED: Final = Path(__file__).parent / "streaming"
PROJECT: Final = Path(__file__).parents[2]
KINDS: Final = ("planted", "quiet")
PROPERTIES: Final = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
"""The options of the JVM let it start soon, so that a short program is not mostly its start."""
EVERY_FIELD: Final = "every_field"
ALWAYS_LATE: Final = "always_late"


def main(programs: Sequence[str]) -> None:
    """Records some programs, or all."""
    RECORDED.mkdir(exist_ok=True)
    for program in programs or streams.PROGRAMS:
        if program == EVERY_FIELD:
            for version in record.VERSIONS:
                with tempfile.TemporaryDirectory() as scratch:
                    python = record.installed(version, Path(scratch) / "venv")
                    run(python, program, "quiet", of_version(version))
            continue
        for kind in KINDS if program != ALWAYS_LATE else KINDS[:1]:
            run(Path(sys.executable), program, kind, recorded(program, kind))
            found = [f"{finding.rule} ({finding.cost})" for finding in findings(recorded(program, kind))]
            sys.stdout.write(f"{program} {kind}: {', '.join(found) or 'nothing'}\n")


def run(python: Path, program: str, kind: str, kept: Path) -> None:
    """Runs a program, and replaces its recorded log."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        conf, logs = folder / "conf", folder / "logs"
        conf.mkdir()
        logs.mkdir()
        lines = PROPERTIES | {"spark.eventLog.dir": logs.as_uri(), "spark.local.dir": str(folder / "local")}
        text = "".join(f"{name} {value}\n" for name, value in lines.items())
        (conf / "spark-defaults.conf").write_text(text, encoding="utf-8")
        own = {"SPARK_CONF_DIR": str(conf), "PYSPARK_PYTHON": str(python), "SPARK_USER": "somebody"}
        own |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
        if program == ALWAYS_LATE:
            write_hook(folder / "hook")
            own |= {PYTHONPATH: str(folder / "hook")}
        command = [str(python), streams.__file__, program, kind, str(folder / "work")]
        subprocess.run(command, env=os.environ | own, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        names = {str(python.parents[1]): "/venv", str(folder): "/work", str(PROJECT): "/project"}
        scrub = record.scrubber(names | {sys.base_prefix: "/python"})
        (log,) = logs.iterdir()
        content = b"".join(needed(line) for line in scrub(log.read_bytes()).splitlines())
    kept.write_bytes(zstandard.ZstdCompressor(level=19).compress(content))
    sys.stdout.write(f"{kept.name}: {kept.stat().st_size:,} bytes\n")
    sys.stdout.flush()


def recorded(program: str, kind: str) -> Path:
    """The recorded log of a program."""
    return RECORDED / f"{program}-{kind}.zst"


def of_version(version: str) -> Path:
    """The recorded log of `every_field` with a Spark."""
    return RECORDED / f"{version}.zst"


def findings(log: Path) -> list[Finding]:
    """What is reported about a recorded program, with the thresholds as they are shipped."""
    return diagnose(reader.read(log).app, Thresholds())


if __name__ == "__main__":
    main(sys.argv[1:])
