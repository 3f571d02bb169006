"""Enables the event log of every Spark application that a command starts, and records each launch.

Spark's scripts source `spark-env.sh` in `SPARK_CONF_DIR` before they start a JVM, and pass `SPARK_SUBMIT_OPTS` to it.
The injected script restores the original configuration folder, so that the JVM has its usual class path and defaults,
and adds the event log as Java system properties. These have the lowest precedence in `SparkConf`: code, `--conf`,
`--properties-file` and `spark-defaults.conf` override them. The JVM of `spark-pipelines` takes none from the
environment: it gets a configuration folder with links to the original files, where they are the first lines of
`spark-defaults.conf`, which those of the original file override.

Settings of a trial have the highest precedence but that of code: they are the last options of `spark-submit`.
"""

import shlex
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from spark_app.errors import ConfigError
from spark_app.eventlog.model.application import NAME
from spark_app.observe.python_start import with_hook
from spark_app.observe.stack_capture import StackCapture
from spark_app.settings import read_spark_properties
from spark_app.spark import connect_sessions
from spark_app.telemetry import python_logs

CONF_DIR: Final = "SPARK_CONF_DIR"
LOADED: Final = "SPARK_ENV_LOADED"
LAUNCH: Final = "spark.observed.launch"
"""The Spark property with the id of the launch that an application belongs to; `NAME` is the only other invention."""
PIPELINES: Final = "org.apache.spark.deploy.SparkPipelines"
DEFAULTS: Final = "spark-defaults.conf"
SCRIPT: Final = "spark-env.sh"
# In deploy mode cluster the driver may run on another machine, which lacks the folder: nothing is enabled. A program
# that configures its own event log keeps it.
ENVIRONMENT: Final = Template(r"""# Written by `spark-app observe` and removed when it ends; Spark's scripts source it.
export $conf_dir=$conf
if [[ -f "$$$conf_dir/spark-env.sh" ]]; then . "$$$conf_dir/spark-env.sh"; fi
__spark_app_observe() {
  case "$${1:-}" in org.apache.spark.deploy.SparkSubmit|$pipelines) ;; org.*) return ;; esac
  local mode=client before= word files=("$$$conf_dir/spark-defaults.conf")
  for word in "$$@"; do
    if [[ "$$before" == --properties-file ]]; then files+=("$$word"); fi
    if [[ "$$word" == --properties-file=* ]]; then files+=("$${word#*=}"); fi
    before="$$word"
  done
  __spark_app_stated() { grep -qsE "^[[:space:]]*$$1" "$${files[@]}"; }
  if __spark_app_stated 'spark\.eventLog\.(enabled|dir)[[:space:]=:]'; then mode=own; fi
  case " $$* " in *spark.eventLog.enabled=*|*spark.eventLog.dir=*) mode=own ;; esac
  if __spark_app_stated 'spark\.submit\.deployMode[[:space:]=:]+cluster'; then mode=cluster; fi
  case " $${DEPLOY_MODE:+--deploy-mode $$DEPLOY_MODE} $$* " in
    *"--deploy-mode client "*|*"--deploy-mode=client "*|*spark.submit.deployMode=client*)
      mode="$${mode/cluster/client}" ;;
    *"--deploy-mode cluster "*|*"--deploy-mode=cluster "*|*spark.submit.deployMode=cluster*) mode=cluster ;;
  esac
  printf '%s\0' "$$mode" "$$$conf_dir" "$$@" > $notes/$$$$ || return
  export $variable=$token-$$$$
  local added="-D$launch=$token-$$$$$named"
  case "$$mode" in client) added="$$added $options" ;; own) ;; *) return ;; esac
  if [[ "$$1" == $pipelines ]]; then __spark_app_defaults $$added
  else export SPARK_SUBMIT_OPTS="$${SPARK_SUBMIT_OPTS:-} $$added"; fi
}
__spark_app_defaults() {
  local original="$$$conf_dir" word defaults=$notes-$$$$/spark-defaults.conf
  export $conf_dir=$notes-$$$$
  mkdir $notes-$$$$ || return
  ln -s "$$original"/* $notes-$$$$/ 2>/dev/null
  rm -f "$$defaults"
  for word in "$$@"; do word="$${word#-D}"; printf '%s %s\n' "$${word%%=*}" "$${word#*=}"; done > "$$defaults"
  cat "$$original/spark-defaults.conf" >> "$$defaults" 2>/dev/null
}
__spark_app_observe "$$@" || true
unset -f __spark_app_observe __spark_app_defaults __spark_app_stated
""")
# The last option of `spark-submit` counts; what follows its program belongs to the program. Source of the options
# without a value: Spark's `SparkSubmitOptionParser`. A function could not set the parameters of Spark's script.
SETTINGS: Final = Template(r"""if [[ "$${1:-}" == org.apache.spark.deploy.SparkSubmit ]]; then
  __spark_app_words=("$$1")
  shift
  while [[ "$${1:-}" == -* ]]; do
    case "$$1" in
      --supervise|--verbose|-v|--version|--help|-h|--usage-error|--*=*) ;;
      *) __spark_app_words+=("$$1"); shift ;;
    esac
    __spark_app_words+=("$${1:-}")
    shift
  done
  set -- "$${__spark_app_words[@]}" $options "$$@"
  unset __spark_app_words
fi
""")
OPTIONS: Final[Mapping[str, str]] = {
    "spark.driver.memory": "--driver-memory",
    "spark.driver.cores": "--driver-cores",
    "spark.executor.memory": "--executor-memory",
    "spark.executor.cores": "--executor-cores",
    "spark.executor.instances": "--num-executors",
    "spark.cores.max": "--total-executor-cores",
    "spark.master": "--master",
}
"""Options of `spark-submit` that count more than `--conf` with the same setting, where the master has them: the memory
of executors is no option of `local-cluster`."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of Spark by one of its scripts.

    Attributes:
        id: The value of the property `spark.observed.launch` in its applications.
        is_cluster: Whether the deploy mode is cluster; the event log is not enabled then.
        conf: The configuration folder.
        arguments: The arguments of the script: the class first, or else the options.
    """

    id: str
    is_cluster: bool
    conf: Path
    arguments: tuple[str, ...]

    @property
    def is_query(self) -> bool:
        """Whether it only prints information, as `spark-submit --version` does, and starts no application."""
        return any(word in ("--version", "--help", "-h", "--status", "--kill") for word in self.arguments[1:2])

    def properties(self) -> dict[str, str]:
        """The Spark properties of its files and arguments, by precedence; code may set others."""
        options = options_of(self.arguments)
        files = [Path(value) for name, value in options if name == "--properties-file"]
        properties: dict[str, str] = {}
        for file in [self.conf / DEFAULTS, *files]:
            with suppress(ConfigError, ValueError):
                properties |= read_spark_properties(file)
        pairs = [value.partition("=") for name, value in options if name in ("--conf", "-c")]
        return properties | {key.strip(): value.strip() for key, is_pair, value in pairs if is_pair}


class ConnectSession(Struct, frozen=True):
    """A session of Spark Connect that a Python program has opened; `server` is its host and port."""

    server: str
    session: str
    user: str


@dataclass(frozen=True, slots=True)
class EventLogInjection:
    """The folders that event logs and launches are written to.

    Attributes:
        events: An existing folder for event logs.
        scratch: An empty folder without white space in its path, which Spark's scripts do not quote.
        name: The name that applications get in reports, instead of their own.
        settings: Spark properties that they get; only their own code overrides them.
        token: The prefix of all launch ids.
        profile: Samples the stacks of their processes; None does not.
    """

    events: Path
    scratch: Path
    name: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    token: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    profile: StackCapture | None = None

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of the command: `SPARK_CONF_DIR` names the injected script, and Python names call sites."""
        original = environment.get(CONF_DIR)
        self._launches.mkdir()
        self._logs.mkdir()
        self._conf.mkdir()
        _link(Path(original) if original else None, self._conf)
        (self._conf / SCRIPT).write_text(self._script(original), encoding="utf-8")
        kept = {name: value for name, value in environment.items() if name != LOADED}
        hooked = with_hook(kept, self.scratch / "python", self._logs, samples_stacks=self.profile is not None)
        sampled = self.profile.variables() if self.profile else {}
        return hooked | sampled | {CONF_DIR: str(self._conf)}

    def launches(self) -> list[Launch]:
        """The launches so far, in their order."""
        files = sorted(self._launches.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        return [launch for file in files if (launch := self._launch(file)) is not None]

    def python_log(self, launch: str) -> list[bytes]:
        """What the driver of a launch has logged, oldest first; each line is a JSON object."""
        files = [self._logs / f"{launch}.jsonl{end}" for end in (".1", "")]
        return [line for file in files if file.is_file() for line in file.read_bytes().splitlines()]

    def connect_sessions(self) -> list[ConnectSession]:
        """The sessions of Spark Connect that Python programs have opened, in their order."""
        file = self._logs / connect_sessions.FILE
        lines = file.read_bytes().splitlines() if file.is_file() else []
        sessions = list[ConnectSession]()
        for line in lines:
            with suppress(ValueError):  # it may be cut
                sessions.append(msgspec.json.decode(line, type=ConnectSession))
        return sessions

    @property
    def _conf(self) -> Path:
        return self.scratch / "conf"

    @property
    def _launches(self) -> Path:
        return self.scratch / "launches"

    @property
    def _logs(self) -> Path:
        return self.scratch / "python-logs"

    def _launch(self, file: Path) -> Launch | None:
        words = file.read_bytes().decode(errors="replace").split("\0")[:-1]
        if len(words) < 2:  # it is still being written
            return None
        mode, conf, *arguments = words
        return Launch(f"{self.token}-{file.name}", mode == "cluster", Path(conf), tuple(arguments))

    def _script(self, conf: str | None) -> str:
        properties = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            # Applications that start in the same millisecond share an id; a job must not fail because of its log.
            "spark.eventLog.overwrite": "true",
        }
        script = ENVIRONMENT.substitute(
            conf_dir=CONF_DIR,
            conf=shlex.quote(conf) if conf else '"$SPARK_HOME/conf"',
            notes=shlex.quote(str(self._launches)),
            options=" ".join(f"-D{name}={value}" for name, value in properties.items()),
            launch=LAUNCH,
            pipelines=PIPELINES,
            variable=python_logs.LAUNCH,
            token=self.token,
            named=f" -D{NAME}={quote(self.name, safe='')}" if self.name else "",
        )
        script += self.profile.script(LAUNCH) if self.profile else ""
        return script + SETTINGS.substitute(options=_options(self.settings)) if self.settings else script


def _options(settings: Mapping[str, str]) -> str:
    """Settings as options of `spark-submit`, quoted for a shell."""
    given = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    own = [word for key, value in settings.items() if key in OPTIONS for word in (OPTIONS[key], value)]
    return shlex.join([*given, *own])


def _link(original: Path | None, injected: Path) -> None:
    """Links the original configuration files, for programs that look for them in `SPARK_CONF_DIR`."""
    if original is None or not original.is_dir():
        return
    for file in original.iterdir():
        if file.name != SCRIPT:
            (injected / file.name).symlink_to(file.absolute())


def options_of(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Options and their values, given as one word (`--name=value`) or as two."""
    return [
        (word.partition("=")[0], word.partition("=")[2]) if word.startswith("--") and "=" in word else (word, after)
        for word, after in pairwise([*arguments, ""])
    ]
