"""Records the programs of `planted`: `python -m tests.eventlogs.record_planted [CAUSE]...`, on a calm machine.

Kept is what is read of each log, without the names of the machine. Says what is reported about each program first.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import zstandard

from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from tests.eventlogs import planted
from tests.eventlogs.record import scrubber
from tests.eventlogs.record_diagnoses import needed

RECORDED: Final = Path(__file__).parent / "causes"
PROJECT: Final = Path(__file__).parents[2]
KINDS: Final = ("planted", "quiet")
BUSY: Final = "import os, sys\nwhile str(os.getppid()) == sys.argv[1]: pass"
OTHERS: Final = 12
"""Programs that keep the processors busy beside the one with `cpu_starvation`."""
OBSERVED: Final = ("external_wait",)
"""Programs that run under `spark-app observe`, whose measurements are in their logs."""
PROPERTIES: Final = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
"""The options of the JVM let it start soon, so that a short program is not mostly its start."""


def main(causes: Sequence[str]) -> None:
    """Records some programs, or all, each planted and quiet."""
    RECORDED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        planted.tables(folder)
        for cause in causes or planted.CAUSES:
            for kind in KINDS:
                record(cause, kind, folder)
                found = [f"{finding.rule} ({finding.cost})" for finding in findings(cause, kind)]
                sys.stdout.write(f"{cause} {kind}: {', '.join(found) or 'nothing'}\n")
                sys.stdout.flush()


def record(cause: str, kind: str, folder: Path) -> None:
    """Runs a program, and replaces its recorded log."""
    conf, logs = folder / "conf", folder / f"{cause}-{kind}"
    conf.mkdir(exist_ok=True)
    logs.mkdir()
    lines = PROPERTIES | {"spark.eventLog.dir": logs.as_uri(), "spark.local.dir": str(folder / "local")}
    text = "".join(f"{name} {value}\n" for name, value in lines.items())
    (conf / "spark-defaults.conf").write_text(text, encoding="utf-8")
    own = {"SPARK_CONF_DIR": str(conf), "PYSPARK_PYTHON": sys.executable, "SPARK_USER": "somebody"}
    own |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
    with busy(OTHERS if (cause, kind) == ("cpu_starvation", "planted") else 0):
        command = [sys.executable, planted.__file__, cause, kind, str(folder)]
        if cause in OBSERVED:
            observe = [sys.executable, "-m", "spark_app", "observe", "--keep", str(logs), "--"]
            own |= {"PYTHONPATH": str(PROJECT), "SPARK_APP_HOME": str(folder / "home")}
            command = observe + command
        subprocess.run(command, env=os.environ | own, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    scrub = scrubber({str(folder): "/work", str(PROJECT): "/project", sys.base_prefix: "/python"})
    (log,) = logs.iterdir()
    content = b"".join(needed(line) for line in scrub(log.read_bytes()).splitlines())
    recorded(cause, kind).write_bytes(zstandard.ZstdCompressor(level=19).compress(content))


@contextmanager
def busy(programs: int) -> Iterator[None]:
    """Keeps the processors busy with some programs, which end with this one however it ends."""
    running = [subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())]) for _ in range(programs)]
    try:
        yield
    finally:
        for program in running:
            program.kill()
            program.wait()


def recorded(cause: str, kind: str) -> Path:
    """The recorded log of a program."""
    return RECORDED / f"{cause}-{kind}.zst"


def findings(cause: str, kind: str) -> list[Finding]:
    """What is reported about a recorded program, with the thresholds as they are shipped."""
    return diagnose(reader.read(recorded(cause, kind)).app, Thresholds())


if __name__ == "__main__":
    main(sys.argv[1:])
