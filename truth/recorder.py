"""Records the declared pairs: one run at a time, planted and quiet in turn; what is recorded already stays.

Kept are one log of each run, of the calmest round, without the names of the machine, and the truth about the pair.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import zstandard

from tests.eventlogs.record import installed, scrubber
from truth import answers
from truth.answers import BUSY_CORES, Answer, Round, Where
from truth.declared import HERE, KINDS, LOGS, Kind, Pair

PROJECT: Final = HERE.parent
PLACE: Final = "truth.place"
MAX_BYTES: Final = 100_000
"""A log that is larger when it is packed is kept without the accumulables of its tasks."""
MIN_SAVED_MS: Final = 5000
MIN_SAVED: Final = 0.05
"""What a planted cause costs at least, also as a share of the run; less is no cause that anybody would look for."""
SECONDS_OF_LOAD: Final = 1.5
MAX_SECONDS: Final = 300
PROPERTIES: Final = {
    "spark.master": "local[2]",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
"""The options of the JVM let it start soon, so that a short program is not mostly its start."""


def record(pair: Pair, rounds: int, *, calm: bool = False) -> Iterator[str]:
    """Runs the twins in turn until a pair has so many rounds, or so many on a calm machine, for which it then waits.

    Says how long they took, if the pair is not sealed.
    """
    LOGS.mkdir(exist_ok=True)
    if pair.recorded:
        if not answers.rounds(pair):
            yield _taken(pair)
        return
    while answers.rounds(pair, calm=calm) < rounds:
        with tempfile.TemporaryDirectory() as scratch:
            runs = {kind: Run(pair, kind, Path(scratch)) for kind in KINDS}
            for run in runs.values():
                if calm:
                    wait_until_calm()
                run.start()
            yield _add(pair, runs)


class Run:
    """One run of one twin: its log without the marks of the place, and what the marks have said."""

    def __init__(self, pair: Pair, kind: Kind, scratch: Path) -> None:
        """Keeps what is to run."""
        self._pair, self._kind = pair, kind
        self._folder = scratch / kind
        self.load = 0.0
        self.lines: list[dict[str, Any]] = []

    def start(self) -> None:
        """Runs the program to its end, alone, below `spark-app observe`."""
        conf, logs, programs = (self._folder / name for name in ("conf", "logs", "code/truth/programs"))
        for folder in (conf, logs):
            folder.mkdir(parents=True)
        shutil.copytree(HERE / "programs", programs, ignore=shutil.ignore_patterns("__pycache__"))
        lines = PROPERTIES | {"spark.eventLog.dir": logs.as_uri(), "spark.local.dir": str(self._folder / "local")}
        text = "".join(f"{name} {value}\n" for name, value in (lines | self._pair.properties).items())
        (conf / "spark-defaults.conf").write_text(text, encoding="utf-8")
        before = load()
        self._run(conf, programs)
        self.load = round(max(before, load()), 2)
        (log,) = (file for file in logs.iterdir() if not file.name.startswith("."))
        scrub = scrubber(
            {
                str(self._folder): "/work",
                str(PROJECT): "/project",
                sys.prefix: "/environment",
                sys.base_prefix: "/python",
            }
        )
        self.lines = [json.loads(line) for line in scrub(log.read_bytes()).splitlines()]

    def _run(self, conf: Path, programs: Path) -> None:
        python = python_of(self._pair.spark)
        own = {"SPARK_CONF_DIR": str(conf), "PYSPARK_PYTHON": str(python), "SPARK_USER": "somebody"}
        own |= {"PYTHONPATH": str(programs.parents[1]), "SPARK_APP_HOME": str(self._folder / "state")}
        own |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
        if self._pair.properties.get("spark.master", "").startswith("local-cluster"):
            own |= {"SPARK_HOME": str(spark_home(python, self._folder))}
        file, _, function = self._pair.program.partition(".")
        parameters = {"planted": self._kind == "planted"} | self._pair.parameters
        parameters |= {"form": self._pair.form} if self._pair.needs_form else {}
        # What it measures of the host and of Python workers, it adds to the end of the log.
        observe = [sys.executable, "-m", "spark_app", "observe", "--keep", str(self._folder / "logs"), "--"]
        command = [*observe, str(python), str(programs / f"{file}.py"), function, json.dumps(parameters)]
        shown = subprocess.DEVNULL if self._pair.is_sealed else None  # observe says what it finds
        # A session of its own: the JVM outlives its Python by a moment.
        program = subprocess.Popen(
            command, env=os.environ | own, cwd=self._folder, stdout=shown, stderr=shown, start_new_session=True
        )
        try:
            if program.wait(MAX_SECONDS):
                raise RuntimeError(f"{self._pair.name} {self._kind} ended with exit code {program.returncode}")
        finally:
            end(program.pid)

    @property
    def ms(self) -> int:
        """How long the application took, by its log."""
        return duration(self.lines)

    def place(self) -> Where:
        """What the marked jobs are."""
        queries, stages, marks = set[int](), set[int](), set[str]()
        for event in self.lines:
            properties = event.get("Properties") or {}
            if event["Event"] == "SparkListenerJobStart" and PLACE in properties:
                stages.update(event["Stage IDs"])
                marks.add(properties[PLACE])
                queries.update({int(properties["spark.sql.execution.id"])} if _is_query(properties) else ())
        return Where(sorted(queries), sorted(stages), sorted(marks))

    def packed(self) -> bytes:
        """The log without the marks, and if it is large without what tasks counted of their own accord."""
        for event in self.lines:
            (event.get("Properties") or {}).pop(PLACE, None)
        content = _packed(self.lines)
        if len(content) <= MAX_BYTES:
            return content
        for event in self.lines:
            event.get("Task Info", {}).pop("Accumulables", None)
        return _packed(self.lines)


def _is_query(properties: dict[str, str]) -> bool:
    return properties.get("spark.sql.execution.id") is not None


def _packed(lines: list[dict[str, Any]]) -> bytes:
    content = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)
    return zstandard.ZstdCompressor(level=19).compress(content.encode())


def _add(pair: Pair, runs: dict[Kind, Run]) -> str:
    planted, quiet = runs["planted"], runs["quiet"]
    today = datetime.now(UTC).date().isoformat()
    found = Round(planted.ms, quiet.ms, planted.load, quiet.load, today, observed=True)
    answer = answers.merged(pair, _answer(pair, planted.place(), found))
    if answer.kept == len(answer.rounds) - 1:
        for kind, run in runs.items():
            pair.log(kind).write_bytes(run.packed())
    answers.write(pair, answer)
    times = "sealed" if pair.is_sealed else f"{planted.ms / 1000:.1f} s planted, {quiet.ms / 1000:.1f} s quiet"
    little = "; SAVES TOO LITTLE" if pair.saves_time and not costs_enough(planted.ms, quiet.ms) else ""
    return f"{pair.name}: {times}; others had {planted.load} and {quiet.load} cores{little}"


def costs_enough(planted_ms: float, quiet_ms: float) -> bool:
    """Whether the fix saves as much as a planted cause has to cost."""
    return planted_ms - quiet_ms >= max(MIN_SAVED_MS, MIN_SAVED * planted_ms)


def _taken(pair: Pair) -> str:
    """Takes a pair over that was recorded elsewhere, in one round on a calm machine."""
    found: dict[Kind, list[dict[str, Any]]] = {}
    for kind, path in zip(KINDS, pair.recorded, strict=True):
        content = (PROJECT / path).read_bytes()
        pair.log(kind).write_bytes(content)
        lines = zstandard.ZstdDecompressor().decompressobj().decompress(content).splitlines()
        found[kind] = [json.loads(line) for line in lines]
    day = datetime.fromtimestamp(_times(found["planted"])[0] / 1000, UTC).date().isoformat()
    rounds = Round(duration(found["planted"]), duration(found["quiet"]), None, None, day)
    answers.write(pair, _answer(pair, Where(), rounds))
    return f"{pair.name}: taken from {pair.recorded[0]}"


def _answer(pair: Pair, place: Where, found: Round) -> Answer:
    return Answer(
        planted=pair.run("planted"),
        quiet=pair.run("quiet"),
        causes=list(pair.causes),
        remaining=list(pair.remaining),
        form=pair.form,
        strength=pair.strength,
        spark=pair.spark,
        saves_time=pair.saves_time,
        developed_on=pair.is_developed_on,
        place=place,
        rounds=[found],
    )


def duration(lines: list[dict[str, Any]]) -> int:
    """How long an application took, in milliseconds."""
    started, ended = _times(lines)
    return ended - started


def _times(lines: list[dict[str, Any]]) -> tuple[int, int]:
    names = ("SparkListenerApplicationStart", "SparkListenerApplicationEnd")
    found = {event["Event"]: int(event["Timestamp"]) for event in lines if event["Event"] in names}
    return found[names[0]], found[names[1]]


def wait_until_calm() -> None:
    """Waits while others keep the machine busy."""
    while load() >= BUSY_CORES:
        time.sleep(SECONDS_OF_LOAD)


def load() -> float:
    """How many cores are busy now, while no run of ours is."""
    busy, at = _busy_seconds(), time.monotonic()
    time.sleep(SECONDS_OF_LOAD)
    return (_busy_seconds() - busy) / (time.monotonic() - at)


def _busy_seconds() -> float:
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def end(session: int) -> None:
    """Waits some seconds until the processes of a session are over, and ends those that are not."""
    for _ in range(100):
        if not list(_processes(session)):
            return
        time.sleep(0.1)
    for process in _processes(session):
        os.kill(process, 9)


def _processes(session: int) -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[:4]
        except OSError:  # it has ended meanwhile
            continue
        if int(of) == session and state != "Z":
            yield int(stat.parent.name)


def python_of(version: str) -> Path:
    """The Python with a version of Spark: this one, or one that is installed when it is first needed."""
    from pyspark import __version__

    if version == __version__:
        return Path(sys.executable)
    folder = Path(tempfile.gettempdir()) / f"truth-spark-{version}"
    python = folder / "bin" / "python"
    if not python.exists():
        installed(version, folder)
        uv = Path(sys.executable).parent / "uv"
        needed = ["pandas==2.3.3", "pyarrow", "numpy"]
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *needed], check=True)
    return python


def spark_home(python: Path, folder: Path) -> Path:
    """A home of Spark whose workers leave their files in a folder."""
    command = [str(python), "-c", "import pyspark; print(pyspark.__path__[0])"]
    package = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    home = folder / "spark"
    home.mkdir()
    for part in ("bin", "jars"):
        (home / part).symlink_to(package / part)
    return home
