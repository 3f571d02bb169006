"""Event logs as files, and a bridge over a folder of them whose sending is watched."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from spark_app.eventlog.bridge.bridge import Bridge, Options
from spark_app.eventlog.bridge.checkpoint import CheckpointStore
from spark_app.eventlog.bridge.metrics import Aggregate
from spark_app.eventlog.bridge.self_metrics import BridgeStatus
from spark_app.eventlog.bridge.span_queue import OwnedSpan
from spark_app.eventlog.diagnoses.thresholds import load_thresholds
from spark_app.eventlog.parse.locations import LogPath
from tests.polling import poll_until
from tests.unit.eventlog.log import Line, ended, job, job_ended, stage, started, task

OPTIONS = Options(dead_after=3600, metrics_every=0, thresholds=load_thresholds())


def text(*lines: Line) -> str:
    """Lines as they stand in a log."""
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def program(tasks: int = 1, *, app_id: str = "app-1") -> list[Line]:
    """An application with one job of one stage."""
    begin = started() | {"App ID": app_id}
    task_ends = [task(number, 0) for number in range(tasks)]
    return [begin, job(0, [0]), stage(0), *task_ends, stage(0, end=2900), job_ended(0), ended()]


class Collector:
    """Takes what a bridge sends, as long as it is willing."""

    def __init__(self) -> None:
        """Nothing has come."""
        self.is_willing = True
        self.received: list[OwnedSpan] = []
        self.aggregates: list[Aggregate] = []

    def spans(self, batch: Sequence[OwnedSpan]) -> bool:
        """Takes spans."""
        self.received += batch if self.is_willing else []
        return self.is_willing

    def numbers(self, numbers: Aggregate, *, started_ns: int, ended_ns: int) -> bool:
        """Takes what was counted."""
        self.aggregates += [numbers] if self.is_willing else []
        return self.is_willing

    @property
    def ids(self) -> set[int]:
        """Of all spans that came."""
        return {owned.span.ids.span_id for owned in self.received}

    @property
    def tasks(self) -> int:
        """How many tasks were counted, as reported last; beginnings of series have none."""
        return next((count for numbers in reversed(self.aggregates) if (count := tasks_of(numbers))), 0)


def tasks_of(numbers: Aggregate) -> int:
    """How many tasks are counted."""
    groups = [group for each in numbers.applications.values() for group in each.groups.values()]
    return sum(sum(group.histograms["spark.task.duration"].counts) for group in groups if group.histograms)


class Bridged:
    """A bridge that is turned by hand."""

    def __init__(
        self,
        folder: LogPath,
        *,
        options: Options = OPTIONS,
        collector: Collector | None = None,
        state: Path | None = None,
    ) -> None:
        """Begins where the one before left off; its state is beside the folder unless it is named."""
        self.printed: list[str] = []
        self.collector = collector or Collector()
        self.state = CheckpointStore(state or Path(str(folder)).with_name("state"))
        self.bridge = Bridge(
            folder,
            state=self.state,
            export=self.collector,
            print_line=self.printed.append,
            options=options,
            status=BridgeStatus(),
        )

    def until(self, holds: Callable[[], bool]) -> None:
        """Turns until something holds."""

        def turned() -> bool:
            self.bridge.turn()
            return holds()

        poll_until(turned, lambda: (self.printed, self.bridge.status))

    def until_done(self, logs: int = 1) -> None:
        """Turns until so many logs are done, and what they count is reported."""
        self.until(lambda: self.bridge.status.logs_done == logs)
        before = len(self.collector.aggregates)
        if self.collector.is_willing:
            self.until(lambda: len(self.collector.aggregates) > before + 1)

    def close(self) -> None:
        """Ends in order."""
        self.bridge.close()
        self.state.close()

    def kill(self) -> None:
        """Ends without a word, and leaves the state to the next."""
        self.bridge.release()
        self.state.close()


def write(log: Path, lines: Iterable[Line]) -> Path:
    """Writes a log of one file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text(*lines))
    return log
