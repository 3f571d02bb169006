"""Samples the stacks of the processes of an observed command, and writes those of each application beside its log.

JVMs record themselves by Java's Flight Recorder, with nothing but samples switched on; Python processes by
`spark_app.stack_samples.python_sampler`. Both write to the folder of the command, which is deleted in the end.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Final

from spark_app.eventlog.reader import Reading
from spark_app.stack_samples import captured, python_sampler, samples
from spark_app.stack_samples.captured import Captured
from spark_app.telemetry.spark_settings import FLIGHT_RECORDING

MOST_RECORDED: Final = "64m"
"""Disk that the recording of one JVM takes; then its oldest part is dropped."""
MOST_FRAMES: Final = 200
"""Depth of stacks; Java's own limit of 64 cuts off the frame that tells a task."""
EVENT: Final = Template('  <event name="$name">$settings</event>\n')
SETTING: Final = Template('<setting name="$name">$value</setting>')
# Java from 25 on has samples by the time on a processor, also of native code. A setting for an event that a JVM does
# not know is ignored. A JVM without the Flight Recorder would not start with its options, so it gets none. Options for
# executors name files of this machine, where those of a master in another process may not run.
SCRIPT: Final = Template(r"""__spark_app_sample() {
  local home="$${JAVA_HOME:-}" settings=$folder/wall.jfc options word
  case "$${1:-}" in org.apache.spark.deploy.SparkSubmit) ;; *) return ;; esac
  case "$${SPARK_SUBMIT_OPTS:-}" in *-D$launch=*) ;; *) return ;; esac
  if [[ -z "$$home" ]]; then home="$$(readlink -f "$$(command -v java)")"; home="$${home%/bin/java}"; fi
  if [[ ! -f "$$home/lib/jfr/default.jfc" ]]; then return; fi
  if grep -q jdk.CPUTimeSample "$$home/lib/jfr/default.jfc"; then settings=$folder/cpu.jfc; fi
  options="${recording}settings=$$settings,filename=$folder/java,dumponexit=true,maxsize=$size"
  options="$$options -XX:FlightRecorderOptions=stackdepth=$depth,repository=$folder/repository -Xlog:jfr+startup=off"
  export SPARK_SUBMIT_OPTS="$$SPARK_SUBMIT_OPTS $$options"
  for word in "$$@"; do
    case "$$word" in local-cluster\[*|*spark.master=local-cluster\[*|--master=local-cluster\[*)
      export SPARK_SUBMIT_OPTS="$$SPARK_SUBMIT_OPTS \"-Dspark.executor.defaultJavaOptions=$$options\"" ;;
    esac
  done
}
__spark_app_sample "$$@" || true
unset -f __spark_app_sample
""")


@dataclass(frozen=True, slots=True)
class StackCapture:
    """Samples stacks.

    Attributes:
        folder: An existing folder of the command, without white space in its path.
        hertz: Samples of a thread in a second.
    """

    folder: Path
    hertz: float

    @property
    def interval_ms(self) -> float:
        """The time between two samples of a thread."""
        return round(1000 / self.hertz, 3)

    def variables(self) -> dict[str, str]:
        """The environment of the command, for its Python processes."""
        for name in ("java", "repository", "python"):
            (self.folder / name).mkdir(parents=True)
        period = f"{max(1, round(self.interval_ms))} ms"
        wall = {name: {"enabled": "true", "period": period} for name in captured.BY_WALL_CLOCK}
        _write_settings(self.folder / "wall.jfc", wall)
        _write_settings(self.folder / "cpu.jfc", {captured.BY_CPU: {"enabled": "true", "throttle": period}})
        return {
            python_sampler.FOLDER: str(self.folder / "python"),
            python_sampler.INTERVAL: str(self.interval_ms),
        }

    def script(self, launch: str) -> str:
        """What `spark-env.sh` adds to the options of JVMs that have the property with the id of their launch."""
        return SCRIPT.substitute(
            recording=FLIGHT_RECORDING,
            folder=shlex.quote(str(self.folder)),
            size=MOST_RECORDED,
            depth=MOST_FRAMES,
            launch=launch,
        )

    def write(self, readings: Mapping[str, Sequence[Reading]]) -> list[str]:
        """Writes the samples of each application beside its event log, given by launch.

        Returns:
            A remark for each application without samples, and for each recording that cannot be read.
        """
        found = captured.read(self.folder / "java", self.folder / "repository", self.folder / "python")
        remarks = [f"a recording cannot be read: {each}" for each in found.unread]
        for launch, sessions in readings.items():
            starts = [0, *(each.app.started or 0 for each in sessions[1:]), float("inf")]
            for reading, (begin, end) in zip(sessions, pairwise(starts), strict=True):
                remarks += self._write(found, reading, launch, begin, end)
        return remarks

    def _write(self, found: Captured, reading: Reading, launch: str, begin: float, end: float) -> list[str]:
        # The script of Spark becomes the JVM: its number is that of the launch.
        driver = launch.rpartition("-")[2]
        of_app = found.of(int(driver), reading.app.id, begin, end, interval_ms=self.interval_ms)
        if not isinstance(reading.log, Path) or not of_app.samples:
            return [f"{reading.app.id}: no stack was sampled"]
        samples.write(of_app, samples.file_of(reading.log))
        return []


def _write_settings(file: Path, events: dict[str, dict[str, str]]) -> None:
    """Settings of the Flight Recorder: what they do not name is off."""
    names = {"jdk.JVMInformation": {"enabled": "true", "period": "everyChunk"}} | events
    lines = [
        EVENT.substitute(
            name=name, settings="".join(SETTING.substitute(name=key, value=value) for key, value in settings.items())
        )
        for name, settings in names.items()
    ]
    text = '<?xml version="1.0" encoding="UTF-8"?>\n<configuration version="2.0">\n' + "".join(lines)
    file.write_text(text + "</configuration>\n", encoding="utf-8")
