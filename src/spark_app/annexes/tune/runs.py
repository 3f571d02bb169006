"""Runs a program once more with other settings, observed, and keeps what a later comparison needs."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from spark_app.annexes.tune.search import Figures
from spark_app.errors import InputError, UsageError
from spark_app.eventlog.comparison import profiling
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.eventlog.cost import HOUR_MS, CoreHours
from spark_app.eventlog.reader import Reading
from spark_app.local_files import ensure_dir
from spark_app.observe.child import environment_of_user, run
from spark_app.observe.event_log_injection import EventLogInjection, Launch
from spark_app.observe.host_load import HostLoadSampler
from spark_app.observe.results import LaunchWatcher
from spark_app.settings import Prices, process_environment

INTERRUPTED: Final = frozenset({128 + 1, 128 + 2, 128 + 15})
"""Exit codes of a command that SIGHUP, SIGINT or SIGTERM ended."""
NO_EXPORT: Final = {"SPARK_APP_EVENT_LOG_EXPORTER": "bridge"}
MAX_PRINTED: Final = 65_536
"""Bytes of the end of what a program printed that are searched for an error."""


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended.

    Attributes:
        settings: What it was given.
        code: Its exit code.
        is_interrupted: Whether a signal to this process ended it.
        seconds: How long the command took.
        reading: The event log of its only application; None without one.
        launch: How it was launched; None where no launch was seen.
        log: The file with what it printed.
    """

    settings: Mapping[str, str]
    code: int
    is_interrupted: bool
    seconds: float
    reading: Reading | None
    launch: Launch | None
    log: Path

    @property
    def profile(self) -> RunProfile:
        """Its profile.

        Raises:
            InputError: It has left no event log.
        """
        if self.reading is None:
            raise InputError(f"no event log of a Spark application was found: {self.log} has what the command printed")
        return profiling.run_profile(self.reading)

    @property
    def printed(self) -> str:
        """The end of what it printed."""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - MAX_PRINTED))
            return file.read().decode(errors="replace")


@dataclass(slots=True)
class Runner:
    """Runs a command again and again, and keeps its event logs and what it prints in a folder.

    Attributes:
        command: The program and its arguments.
        folder: For event logs and what the runs print.
        count: How many runs have begun.
    """

    command: Sequence[str]
    folder: Path
    count: int = field(default=0)

    def run(self, settings: Mapping[str, str]) -> EndedRun:
        """Runs the command to its end.

        Raises:
            CommandError: It cannot be started.
            UsageError: It ran several Spark applications.
        """
        self.count += 1
        log = ensure_dir(self.folder) / f"run-{self.count:02}.log"
        with tempfile.TemporaryDirectory(prefix="spark-app-", dir="/tmp") as scratch:
            injection = EventLogInjection(ensure_dir(self.folder / "events"), Path(scratch), settings=settings)
            variables = injection.variables(environment_of_user(process_environment())) | NO_EXPORT
            watcher, heard, began = LaunchWatcher(injection), list[int](), time.monotonic()
            sampler = HostLoadSampler(jvms=lambda: watcher.jvms)
            code = run(self.command, variables, look=sampler.beside(watcher.look), hear=heard.append, printed=log)
            seconds = time.monotonic() - began
            seen = watcher.seen(self.command, process_environment(), code=code)
            watcher.annotate(seen.readings, sampler.load)
            launches = [launch for launch in injection.launches() if not launch.is_query]
        if len(seen.readings) > 1:
            raise UsageError(f"the command ran {len(seen.readings)} Spark applications: tune one at a time")
        reading = seen.readings[0] if seen.readings else None
        is_interrupted = bool(heard) or code in INTERRUPTED
        return EndedRun(settings, code, is_interrupted, seconds, reading, launches[-1] if launches else None, log)


def figures(profile: RunProfile, prices: Prices) -> Figures:
    """What a run took; its cost is in core-hours where nothing has a price."""
    cpu = sum(group.spent.cpu for group in profile.groups)
    spent = CoreHours(profile.core_ms / HOUR_MS, None if profile.gib_ms is None else profile.gib_ms / HOUR_MS)
    price = spent.price(prices)
    return Figures(profile.duration_ms, cpu, spent.core_hours if price is None else float(price))
