"""The runs of an application for lineage: itself, and below it each query and stream that reads or writes a place."""

import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final, Literal

from spark_app.annexes.lineage import datasets
from spark_app.annexes.lineage.datasets import Dataset, Field
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.operators import NO_PLAN, Operator, own_plan_of
from spark_app.eventlog.model.outcome import ending_of
from spark_app.eventlog.model.plan_names import COMMAND, OUTPUT_ROWS, WRITTEN_BYTES
from spark_app.eventlog.model.stream_queries import StreamQuery
from spark_app.eventlog.model.targets import Target
from spark_app.report.formatting import line, text
from spark_app.runs.column_lineage import TableColumns

State = Literal["COMPLETE", "FAIL", "ABORT", "RUNNING"]
STATES: Final[dict[str, State]] = {
    "succeeded": "COMPLETE",
    "ended": "COMPLETE",
    "failed": "FAIL",
    "killed": "ABORT",
    "incomplete": "RUNNING",
    "running": "RUNNING",
}
"""By the outcome of an application; whether an incomplete one still runs is not known."""
APPLICATION: Final = "APPLICATION"
QUERY: Final = "QUERY"
STREAM: Final = "STREAM"
"""Kinds of jobs."""
DEFAULT_NAMESPACE: Final = "default"
PROPERTY: Final = "spark.openlineage."
"""Spark properties of OpenLineage's own integration, which Airflow and others set: namespace and parent of the job."""
_IDS: Final = uuid.UUID("6f1c2b0e-8d5a-5f0e-9c57-2a7a4d0b9e11")
"""The namespace of the ids: the same log gives the same ids."""
MAX_ERROR: Final = 2000
ROWS: Final = (
    OUTPUT_ROWS,
    "number of inserted rows",
    "number of updated rows",
    "number of rows updated.",
)
"""What commands have written: of Delta's MERGE and UPDATE the rows that they changed, not those that they copied."""
_DELETE: Final = f"{COMMAND}DeleteCommand"
"""Delta's DELETE of a table without a name: the event log names it only where the query reads the log of the table."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """A job and one run of it."""

    namespace: str
    name: str
    run_id: str


@dataclass(frozen=True, slots=True)
class LineageRun:
    """What lineage says of a run; times in milliseconds since the epoch.

    Attributes:
        job: The job, and the id of the run.
        kind: `APPLICATION`, `QUERY`, or `STREAM`: a streaming query, which is one run with all its batches.
        parent: What started it; None where that is not known.
        started, ended: When; of a run without an end, the last time of the log.
        state: How it ended, or that it runs.
        error: Why it failed.
        inputs, outputs: What it read and wrote.
        rows, bytes: Written to the output, if there is one and Spark has counted them.
        spark_version: The version of Spark.
    """

    job: JobRun
    kind: Literal["APPLICATION", "QUERY", "STREAM"]
    parent: JobRun | None
    started: int
    ended: int
    state: State
    error: str | None = None
    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()
    rows: int | None = None
    bytes: int | None = None
    spark_version: str | None = None


def lineage_runs(
    app: Application, namespace: str | None = None, declared: Iterable[TableColumns] = ()
) -> list[LineageRun]:
    """The run of an application, and those of its queries in the order of their starts.

    Args:
        app: The application.
        namespace: That of its jobs; None for the one of its Spark properties, or else `default`.
        declared: By column of its declared tables the columns that it is computed from, which the log does not have.
    """
    parent, ending = _parent(app), ending_of(app)
    name = namespace or app.properties.get(f"{PROPERTY}namespace") or (parent and parent.namespace) or DEFAULT_NAMESPACE
    job = JobRun(name, line(app.name or app.id), _id(app))
    error = text(ending.error, MAX_ERROR) if ending.error and STATES[ending.outcome] == "FAIL" else None
    began = app.began or 0
    whole = LineageRun(job, APPLICATION, parent, began, app.ended or app.last, STATES[ending.outcome], error)
    runs = [replace(whole, spark_version=app.spark_version), *_of_queries(app, job), *_of_streams(app, job)]
    declared = [*declared]
    folders = {datasets.of_location(path) for each in declared for path in each.inputs.values() if path}
    runs = [replace(run, inputs=_each_once(_in_folder(each, folders) for each in run.inputs)) for run in runs]
    written = [(datasets.of_location(each.path), each) for each in declared]
    known = {(dataset.namespace, dataset.name): each for dataset, each in written}
    return sorted(
        (_with_origins(run, known) for run in _located(runs, name)),
        key=lambda run: (run.kind != APPLICATION, run.started),
    )


def _with_origins(run: LineageRun, known: Mapping[tuple[str, str], TableColumns]) -> LineageRun:
    """The run with the columns that those of its outputs are computed from."""
    read = {(each.namespace, each.name) for each in run.inputs}
    outputs = [
        replace(each, origins=_origins(known[key], read - {key}))
        if (key := (each.namespace, each.name)) in known
        else each
        for each in run.outputs
    ]
    return replace(run, outputs=tuple(outputs))


def _origins(table: TableColumns, read: Set[tuple[str, str]]) -> tuple[tuple[str, tuple[Field, ...]], ...]:
    """What the columns of a table are made of, by a query that reads datasets; without those made of no column.

    None by a query that reads other datasets than the table is made of, such as one that compacts or corrects it.
    """
    inputs = {name: datasets.of_location(path) for name, path in table.inputs.items() if path}
    if not read or not read <= {(each.namespace, each.name) for each in inputs.values()}:
        return ()
    return tuple(
        (column, tuple(Field(inputs[each.input].namespace, inputs[each.input].name, each.column) for each in found))
        for column, found in table.columns.items()
        if found and all(each.input in inputs for each in found)
    )


def _located(runs: list[LineageRun], namespace: str) -> list[LineageRun]:
    """The runs with each table of the catalog at the path where any query of the application has found it."""
    datasets_of_runs = [each for run in runs for each in (*run.inputs, *run.outputs)]
    located = {each.table: each for each in datasets_of_runs if each.table}

    def at_path(dataset: Dataset) -> Dataset:
        known = located.get(dataset.name) if dataset.namespace == namespace else None
        return dataset if known is None else replace(known, columns=dataset.columns)

    return [
        replace(run, inputs=_each_once(map(at_path, run.inputs)), outputs=_each_once(map(at_path, run.outputs)))
        for run in runs
    ]


def _parent(app: Application) -> JobRun | None:
    """The job that started the application, as its Spark properties name it; None without a valid run id."""
    named = [app.properties.get(f"{PROPERTY}parent{key}", "") for key in ("JobNamespace", "JobName", "RunId")]
    try:
        uuid.UUID(named[2])
    except ValueError:
        return None
    return JobRun(*named) if all(named) else None


def _id(app: Application, part: object = "") -> str:
    parts = (app.id, app.attempt or "", app.began or 0, part)
    return str(uuid.uuid5(_IDS, "/".join(map(str, parts))))


def _of_queries(app: Application, job: JobRun) -> Iterator[LineageRun]:
    """The queries that are no part of another one, with what their parts read and write; without those of streams."""
    parts: dict[int, list[Query]] = defaultdict(list)
    for query in app.queries.values():
        if query.batch is None:
            parts[query.id if query.root not in app.queries else query.root].append(query)
    for number, own in parts.items():  # a part may begin before its query
        run = _of_query(app, app.queries[number], sorted(own, key=lambda part: part.id != number), job)
        if run.inputs or run.outputs:
            yield run


def _of_query(app: Application, query: Query, parts: list[Query], job: JobRun) -> LineageRun:
    plans = [_plan(part) for part in parts]
    outputs = _outputs(parts, plans, job.namespace)
    read = [each for plan in plans for each in datasets.inputs(plan, job.namespace)]
    state: State = "FAIL" if query.error else "COMPLETE" if query.ended is not None else _unfinished(app)
    return LineageRun(
        job=JobRun(job.namespace, f"{job.name}.{_name(plans[0], outputs)}", _id(app, query.id)),
        kind=QUERY,
        parent=job,
        started=query.started,
        ended=query.ended or app.last,
        state=state,
        error=text(query.error, MAX_ERROR) if query.error else None,
        inputs=_each_once(read),
        outputs=outputs,
        rows=_counted(plans, ROWS) if outputs else None,
        bytes=_counted(plans, (WRITTEN_BYTES,)) if outputs else None,
        spark_version=app.spark_version,
    )


def _of_streams(app: Application, job: JobRun) -> Iterator[LineageRun]:
    """The streaming queries: their sources and sinks, and what their batches write and the last one also reads."""
    batches: dict[str, list[Query]] = defaultdict(list)
    for query in app.queries.values():
        if query.batch is not None:
            batches[query.batch.query].append(query)
    for stream in app.streams.queries.values():
        run = _of_stream(app, stream, batches[stream.id], job)
        if run.inputs or run.outputs:
            yield run


def _of_stream(app: Application, stream: StreamQuery, queries: list[Query], job: JobRun) -> LineageRun:
    progress = stream.progress
    last = [query for query in queries if query.batch == queries[-1].batch]
    read = [datasets.of_stream(each.description) for each in (progress.sources if progress else [])]
    joined = [each for query in last for each in datasets.inputs(_plan(query), job.namespace)]
    sink = datasets.of_stream(progress.sink.description) if progress and progress.sink else None
    written = [datasets.of_target(query.target, job.namespace) for query in queries if query.target]
    sources = [each for each in read if each is not None]
    return LineageRun(
        job=JobRun(
            job.namespace, f"{job.name}.{line(stream.name or stream.id)}", _id(app, f"{stream.id}/{stream.run}")
        ),
        kind=STREAM,
        parent=job,
        started=stream.started or app.began or 0,
        ended=stream.ended or app.last,
        state="FAIL" if stream.error else "COMPLETE" if stream.ended is not None else _unfinished(app),
        error=text(stream.error, MAX_ERROR) if stream.error else None,
        inputs=_each_once([*sources, *(each for each in joined if not _is_within(each, sources))]),
        outputs=_each_once(filter(None, [sink, *written])),
        spark_version=app.spark_version,
    )


def _is_within(dataset: Dataset, folders: list[Dataset]) -> bool:
    """Whether a dataset is a file in one of some folders, as one that a micro-batch has read of a source."""
    return any(
        dataset.namespace == folder.namespace and dataset.name.startswith(f"{folder.name}/") for folder in folders
    )


def _in_folder(dataset: Dataset, folders: Iterable[Dataset]) -> Dataset:
    """The innermost declared folder that a file is in, or the dataset itself: raw files have other names each day."""
    around = [folder for folder in folders if _is_within(dataset, [folder])]
    if not around or any(dataset.name == folder.name for folder in folders):
        return dataset
    nearest = max(around, key=lambda folder: len(folder.name))
    return replace(dataset, namespace=nearest.namespace, name=nearest.name)


def _each_once(found: Iterable[Dataset]) -> tuple[Dataset, ...]:
    return tuple({(each.namespace, each.name): each for each in found}.values())


def _unfinished(app: Application) -> State:
    return "RUNNING" if STATES[ending_of(app).outcome] == "RUNNING" else "ABORT"


def _plan(query: Query) -> Operator:
    try:
        return own_plan_of(query).root
    except ValueError:
        return NO_PLAN.root


def _outputs(parts: list[Query], plans: list[Operator], namespace: str) -> tuple[Dataset, ...]:
    """What is written, with path and table, where one part of a query names the table and another one its path."""
    targets = [part.target for part in parts if part.target]
    if plans[0].first.name == _DELETE:
        targets += [Target(path, path) for path in filter(None, map(datasets.delta_path, plans))]
    if not targets:
        return ()
    path = next(filter(None, (target.path for target in targets)), None)
    table = next(filter(None, (target.table for target in targets)), None)
    dataset = datasets.of_target(replace(targets[0], path=path, table=table), namespace)
    columns = next(filter(None, map(datasets.written_columns, plans)), ())
    return () if dataset is None else (replace(dataset, columns=columns),)


def _name(plan: Operator, outputs: tuple[Dataset, ...]) -> str:
    """The command of a query and what it writes, which stay the same from run to run: `insert_into.sums`."""
    name = re.sub(r"[^A-Za-z0-9 ]+.*", "", plan.first.name)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).split()
    target = [output.table or output.name.rstrip("/").rpartition("/")[2] for output in outputs]
    return ".".join(["_".join(words).lower() or "query", *target])


def _counted(plans: list[Operator], names: tuple[str, ...]) -> int | None:
    """The sum of what the command at the top of one of the plans has counted under these names."""
    for plan in plans:
        first = plan.first
        counted = [int(first.numbers[name].value) for name in names if name in first.numbers]
        if counted and first.name.startswith(COMMAND):
            return sum(counted)
    return None
