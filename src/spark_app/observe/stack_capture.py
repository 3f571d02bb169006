"""Samples the stacks of the processes of an observed command, and writes those of each application beside its log.

JVMs record themselves by Java's Flight Recorder, with nothing but samples switched on; Python processes by
`spark_app.stack_samples.python_sampler`. Both write to the folder of the command, which is deleted in the end.
"""

import os
import shlex
import shutil
import stat
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Final

from spark_app import formatting
from spark_app.errors import UsageError
from spark_app.eventlog.reader import Reading
from spark_app.observe import python_start
from spark_app.stack_samples import captured, flight_recorder, python_sampler, samples
from spark_app.stack_samples.captured import Captured
from spark_app.stack_samples.python_stacks import jvm_of
from spark_app.stack_samples.samples import StackSamples

HERTZ: Final = 19.0
"""Samples of a thread in a second, unless others are asked for."""
SECONDS_TO_END: Final = 5.0
"""How long executors that still end may take to write their recordings, after the command has ended."""
ADVICE: Final = "those of another master need --profile-executors, with a folder that they share with this machine"
EVENTS: Final = "@EVENTS@"
# A JVM without the Flight Recorder would not start with its options, so it gets none. Executors of a master in another
# process may have another Java, of which only the user knows whether it has one.
SCRIPT: Final = Template(r"""__spark_app_sample() {
  local home="$${JAVA_HOME:-}" events=$wall word options=$driver executors=$executors added=default
  case "$${1:-}" in org.apache.spark.deploy.SparkSubmit) ;; *) return ;; esac
  case "$${SPARK_SUBMIT_OPTS:-}" in *-D$launch=*) ;; *) return ;; esac
  if grep -qs '^ *spark\.executor\.defaultJavaOptions' "$${SPARK_CONF_DIR:-}/spark-defaults.conf"; then added=extra; fi
  if [[ -z "$$home" ]]; then home="$$(readlink -f "$$(command -v java)")"; home="$${home%/bin/java}"; fi
  if [[ -f "$$home/lib/jfr/default.jfc" ]]; then
    if grep -q jdk.CPUTimeSample "$$home/lib/jfr/default.jfc"; then events=$cpu; fi
    export SPARK_SUBMIT_OPTS="$$SPARK_SUBMIT_OPTS $${options//$marker/$$events}"
    for word in "$$@"; do
      case "$$word" in local-cluster\[*|*spark.master=local-cluster\[*|--master=local-cluster\[*)
        executors="$${executors//$marker/$$events}"
        export SPARK_SUBMIT_OPTS="$$SPARK_SUBMIT_OPTS \"-Dspark.executor.$${added}JavaOptions=$$executors\""
        return ;;
      esac
    done
  fi
  if [[ -n "$elsewhere" ]]; then
    executors="$${executors//$marker/$cpu,$wall}"
    export SPARK_SUBMIT_OPTS="$$SPARK_SUBMIT_OPTS \"-Dspark.executor.$${added}JavaOptions=$$executors\""
  fi
}
__spark_app_sample "$$@" || true
unset -f __spark_app_sample
""")


@dataclass(frozen=True, slots=True)
class StackCapture:
    """Samples stacks.

    Attributes:
        folder: A folder of the command that does not exist yet, without white space in its path.
        hertz: Samples of a thread in a second.
        is_shared: Whether executors of a master in another process have the folder, too.
    """

    folder: Path
    hertz: float
    is_shared: bool = False

    @property
    def interval_ms(self) -> float:
        """The time between two samples of a thread."""
        return round(1000 / self.hertz, 3)

    def variables(self, *, is_own: bool = False) -> dict[str, str]:
        """The environment of the command, for its Python processes.

        Args:
            is_own: Whether its driver is this process, and its workers do not get the hook from their environment.
        """
        captured.make_folders(self.folder, mode=stat.S_IMODE(self.folder.parent.stat().st_mode))
        variables = {
            python_sampler.FOLDER: str(self.folder / captured.PYTHON),
            python_sampler.INTERVAL: str(self.interval_ms),
        }
        if not (self.is_shared or is_own):
            return variables
        hook = self.folder / "hook"
        python_start.write_hook(hook, samples_stacks=True)
        hook.chmod(0o755)
        return variables | {python_sampler.HOOK: str(hook)}

    def script(self, launch: str) -> str:
        """What `spark-env.sh` adds to the options of JVMs that have the property with the id of their launch."""
        return SCRIPT.substitute(
            marker=EVENTS,
            driver=shlex.quote(flight_recorder.options_of_driver(self.folder, EVENTS)),
            executors=shlex.quote(flight_recorder.options_of_executors(self.folder, EVENTS)),
            elsewhere="yes" if self.is_shared else "",
            wall=flight_recorder.rates(self.interval_ms, *captured.BY_WALL_CLOCK),
            cpu=flight_recorder.rates(self.interval_ms, captured.BY_CPU),
            launch=launch,
        )

    def write(self, readings: Mapping[str, Sequence[Reading]]) -> list[str]:
        """Writes the samples of each application beside its event log, given by launch.

        Returns:
            A remark for each application without samples, and for each recording that cannot be read.
        """
        found = captured.read_folder(self.folder, patience=SECONDS_TO_END)
        remarks = incomplete(found)
        for launch, sessions in readings.items():
            starts = [0, *(each.app.started or 0 for each in sessions[1:]), float("inf")]
            for reading, (begin, end) in zip(sessions, pairwise(starts), strict=True):
                remarks += self._write(found, reading, launch, begin, end)
        return remarks

    def _write(self, found: Captured, reading: Reading, launch: str, begin: float, end: float) -> list[str]:
        of_app = found.of(jvm_of(launch) or 0, reading.app.id, begin, end, interval_ms=self.interval_ms)
        return write_beside(of_app, reading)


@contextmanager
def stack_capture(scratch: Path, shared: Path | None, hertz: float) -> Iterator[StackCapture]:
    """Samples to a folder of its own, which is deleted in the end.

    Args:
        scratch: A folder for a driver whose executors are on this machine.
        shared: One that executors of a master in another process have, too; None for none.
        hertz: Samples of a thread in a second.

    Raises:
        UsageError: The folder that is shared cannot be used.
    """
    if shared is None:
        yield StackCapture(scratch / "stacks", hertz)
        return
    folder = shared.absolute() / f"spark-app-{uuid.uuid4().hex[:12]}"
    if any(part.isspace() for part in str(folder)) or not os.access(shared, os.W_OK | os.X_OK):
        raise UsageError(f"cannot sample executors: {shared} must be a folder that can be written, without white space")
    try:
        yield StackCapture(folder, hertz, is_shared=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def incomplete(found: Captured) -> list[str]:
    """A remark for each process whose samples cannot be read, or are not all there."""
    unread = [f"a recording cannot be read: {each}" for each in found.unread]
    cut = [each.pid for each in found.python if each.is_cut]
    return [*unread, *(f"Python process {pid} is sampled in part: its file is full" for pid in cut)]


def write_beside(of_app: StackSamples, reading: Reading) -> list[str]:
    """Writes the samples of an application beside its event log; returns what is missing."""
    app = reading.app
    if not of_app.samples:
        return [f"{app.id}: no stack was sampled"]
    samples.write(of_app, samples.file_of(reading.log))
    sampled = {each.executor for each in of_app.processes if each.role == "executor"}
    lacking = sorted(set(app.executors) - sampled - {captured.DRIVER})
    if not lacking:
        return []
    return [f"{app.id}: no stack of {formatting.quantity(len(lacking), 'executor')} was sampled: {ADVICE}"]
