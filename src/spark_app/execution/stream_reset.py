"""Starts streaming queries over: deletes what a query has written and how far it has read."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from spark_app.engine.progress import ProgressListener
from spark_app.engine.stream import start_file
from spark_app.errors import UsageError
from spark_app.execution import pipelines
from spark_app.execution.application import open_warehouse
from spark_app.runs import stream_status
from spark_app.settings import Settings
from spark_app.warehouse import hadoop_files
from spark_app.warehouse.tables import Warehouse


@dataclass(frozen=True)
class Deletion:
    """What starting a query over deletes.

    Attributes:
        query: `streaming.events`.
        checkpoint: The folder of its offsets and state; None if it has none.
        tables: The rows of each table that it writes, by its folder.
    """

    query: str
    checkpoint: str | None
    tables: dict[str, int]


def reset(
    settings: Settings,
    chosen: Sequence[str],
    confirm: Callable[[Sequence[Deletion]], bool],
    *,
    listener: ProgressListener,
) -> list[Deletion]:
    """Deletes the tables and the checkpoints of queries if it is confirmed; returns what was deleted.

    Args:
        settings: The configuration.
        chosen: Names of queries, at least one.
        confirm: Is shown what will be deleted, and decides.
        listener: Hears notes.

    Raises:
        UsageError: No query is named, one does not exist, or one runs.
    """
    names = pipelines.qualified("streaming", chosen)
    _require_stopped(settings, names)
    with open_warehouse(settings, listener=listener) as warehouse, stopped(warehouse, names):
        deletions = [deletion(warehouse, settings, name) for name in names]
        if not confirm(deletions):
            return []
        for each in deletions:
            hadoop_files.delete(warehouse.spark, start_file(settings, each.query))
            delete(warehouse, each, note=listener.note)
    return deletions


@contextmanager
def stopped(warehouse: Warehouse, names: Sequence[str]) -> Iterator[None]:
    """Keeps queries from running, by the locks that their runs hold; one that is started meanwhile waits.

    Raises:
        UsageError: One runs.
    """
    with ExitStack() as locks:
        for name in sorted(set(names)):
            locks.enter_context(warehouse.lock(name, on_wait=partial(_refuse, name)))
        yield


def _refuse(name: str) -> NoReturn:
    raise UsageError(f"{name} runs: stop it first")


def deletion(warehouse: Warehouse, settings: Settings, name: str) -> Deletion:
    """What starting a query over deletes."""
    written = [table.name for table in pipelines.load("streaming")[name].writes if warehouse.exists(table.name)]
    checkpoint = f"{settings.checkpoints_path}/{name}"
    has_checkpoint = hadoop_files.names_in(warehouse.spark, checkpoint) is not None
    tables = {warehouse.path(table): warehouse.table(table).count() for table in written}
    return Deletion(name, checkpoint if has_checkpoint else None, tables)


def delete(warehouse: Warehouse, deletion: Deletion, *, note: Callable[[str], None]) -> None:
    """Deletes the tables, then the checkpoint: a query with a checkpoint and without its tables refuses to start."""
    for folder in [*deletion.tables, *([deletion.checkpoint] if deletion.checkpoint else [])]:
        hadoop_files.delete(warehouse.spark, folder)
        note(f"{deletion.query}: deleted {folder}")


def _require_stopped(settings: Settings, names: Sequence[str]) -> None:
    if not names:
        raise UsageError("reset needs the name of a query: `spark-app streaming reset events`")
    for status in stream_status.running(settings.runs_path):
        if status.pipeline in names:
            how = f"runs (run {status.run_id})" if status.run_id else "is starting"
            raise UsageError(f"{status.pipeline} {how}: stop it first")
