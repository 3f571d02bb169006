"""Switches the event log on for every Spark that a command starts, and notes each start.

Spark's own scripts source `spark-env.sh` of `SPARK_CONF_DIR` before they start a JVM, and hand `SPARK_SUBMIT_OPTS` to
it. Ours gives them their own configuration folder back, so that the JVM has the class path and the defaults it would
have had, and adds the event log as Java system properties. `SparkConf` ranks these below everything else: code,
`--conf`, `--properties-file` and `spark-defaults.conf` win where they say something.
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

from app.config_files import read_spark_properties
from app.errors import ConfigError

CONF_DIR: Final = "SPARK_CONF_DIR"
LOADED: Final = "SPARK_ENV_LOADED"
LAUNCH: Final = "spark.observed.launch"
"""The Spark property that says which start an application belongs to; it is the only one that we invent."""
DEFAULTS: Final = "spark-defaults.conf"
SCRIPT: Final = "spark-env.sh"
# A driver on another machine has no such folder: nothing is switched on where the deploy mode is cluster. Who sets an
# event log of his own keeps it as it is, in the form and in the place he wants.
ENVIRONMENT: Final = Template(r"""# Written by `spark-app observe`, gone when it has ended; Spark's scripts source it.
export $conf_dir=$conf
if [[ -f "$$$conf_dir/spark-env.sh" ]]; then . "$$$conf_dir/spark-env.sh"; fi
__spark_app_observe() {
  case "$${1:-}" in org.apache.spark.deploy.SparkSubmit) ;; org.*) return ;; esac
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
  case "$$mode" in
    client) export SPARK_SUBMIT_OPTS="$${SPARK_SUBMIT_OPTS:-} -D$launch=$token-$$$$ $options" ;;
    own) export SPARK_SUBMIT_OPTS="$${SPARK_SUBMIT_OPTS:-} -D$launch=$token-$$$$" ;;
  esac
}
__spark_app_observe "$$@" || true
unset -f __spark_app_observe __spark_app_stated
""")


@dataclass(frozen=True, slots=True)
class Launch:
    """A start of Spark by one of its scripts.

    Attributes:
        id: The value that the property `spark.observed.launch` has in its applications.
        is_cluster: Whether its driver runs elsewhere; its event log is not switched on then.
        conf: The folder of its configuration.
        arguments: Of the script: the class first, or else the options.
    """

    id: str
    is_cluster: bool
    conf: Path
    arguments: tuple[str, ...]

    @property
    def is_question(self) -> bool:
        """Whether it only asked Spark something, and so starts no application."""
        return any(word in ("--version", "--help", "-h", "--status", "--kill") for word in self.arguments[1:2])

    def stated(self) -> dict[str, str]:
        """The Spark properties that its files and arguments state, as they rank; code may state others."""
        options = options_of(self.arguments)
        files = [Path(value) for name, value in options if name == "--properties-file"]
        found: dict[str, str] = {}
        for file in [self.conf / DEFAULTS, *files]:
            with suppress(ConfigError, ValueError):
                found |= read_spark_properties(file)
        pairs = [value.partition("=") for name, value in options if name in ("--conf", "-c")]
        return found | {key.strip(): value.strip() for key, is_pair, value in pairs if is_pair}


@dataclass(frozen=True, slots=True)
class Switch:
    """Where event logs go, and where starts are noted.

    Attributes:
        events: The folder of event logs; it is there.
        scratch: A folder of our own without white space in its path, as Spark's scripts do not quote it.
        token: What all ids of launches begin with.
    """

    events: Path
    scratch: Path
    token: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of the command: one variable differs, and the scripts have not run yet."""
        theirs = environment.get(CONF_DIR)
        self._notes.mkdir()
        self._conf.mkdir()
        _link(Path(theirs) if theirs else None, self._conf)
        (self._conf / SCRIPT).write_text(self._script(theirs), encoding="utf-8")
        kept = {name: value for name, value in environment.items() if name != LOADED}
        return kept | {CONF_DIR: str(self._conf)}

    def launches(self) -> list[Launch]:
        """The starts that were noted so far, in their order."""
        notes = sorted(self._notes.iterdir(), key=lambda note: note.stat().st_mtime_ns)
        return [launch for note in notes if (launch := self._launch(note)) is not None]

    @property
    def _conf(self) -> Path:
        return self.scratch / "conf"

    @property
    def _notes(self) -> Path:
        return self.scratch / "launches"

    def _launch(self, note: Path) -> Launch | None:
        words = note.read_bytes().decode(errors="replace").split("\0")[:-1]
        if len(words) < 2:  # it is being written
            return None
        mode, conf, *arguments = words
        return Launch(f"{self.token}-{note.name}", mode == "cluster", Path(conf), tuple(arguments))

    def _script(self, theirs: str | None) -> str:
        properties = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            # Two applications of one millisecond have one id; a job must not fail because of its log.
            "spark.eventLog.overwrite": "true",
        }
        return ENVIRONMENT.substitute(
            conf_dir=CONF_DIR,
            conf=shlex.quote(theirs) if theirs else '"$SPARK_HOME/conf"',
            notes=shlex.quote(str(self._notes)),
            options=" ".join(f"-D{name}={value}" for name, value in properties.items()),
            launch=LAUNCH,
            token=self.token,
        )


def _link(theirs: Path | None, ours: Path) -> None:
    """Their files are found in our folder, too: a program may look for them where `SPARK_CONF_DIR` says."""
    if theirs is None or not theirs.is_dir():
        return
    for file in theirs.iterdir():
        if file.name != SCRIPT:
            (ours / file.name).symlink_to(file.absolute())


def options_of(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """The options with a value among some arguments; each is in one word, or in two."""
    return [
        (word.partition("=")[0], word.partition("=")[2]) if word.startswith("--") and "=" in word else (word, after)
        for word, after in pairwise([*arguments, ""])
    ]
