"""Runs as events of OpenLineage, which its official client builds and sends."""

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final, TypeVar

import attr
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    BaseFacet,
    DatasetFacet,
    RunFacet,
    column_lineage_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    symlinks_dataset,
)
from openlineage.client.serde import Serde
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider

from spark_app.annexes.lineage.datasets import Dataset
from spark_app.annexes.lineage.runs import APPLICATION, STREAM, LineageRun
from spark_app.errors import MachineError
from spark_app.redaction import redacted

Facet = TypeVar("Facet", bound=BaseFacet)
PRODUCER: Final = f"urn:spark-app:{version('spark-app')}"
SECONDS: Final = 5.0
"""How long the endpoint may take for one event."""
RETRIES: Final = {"total": 2, "backoff_factor": 0.3, "status_forcelist": [502, 503, 504], "allowed_methods": ["POST"]}


def events(runs: list[LineageRun]) -> list[RunEvent]:
    """The start of each run and its end, or that it still runs, in the order of their times.

    The application starts before its queries, and ends after them.
    """
    starts = [(run.started, run.kind != APPLICATION, _event(run, RunState.START, run.started)) for run in runs]
    ends = [(run.ended, 2 + (run.kind == APPLICATION), _event(run, RunState[run.state], run.ended)) for run in runs]
    return [event for *_, event in sorted([*starts, *ends], key=lambda each: each[:2])]


def encoded(event: RunEvent) -> bytes:
    """An event as a line of JSON."""
    return Serde.to_json(event).encode() + b"\n"


def send(found: list[RunEvent], url: str, api_key: str | None) -> None:
    """Sends events to a server of OpenLineage, in their order.

    Raises:
        MachineError: It does not take them.
    """
    auth = ApiKeyTokenProvider({"apiKey": api_key}) if api_key else TokenProvider({})
    transport = HttpTransport(HttpConfig(url=f"{url.rstrip('/')}/", timeout=SECONDS, auth=auth, retry=RETRIES))
    try:
        for number, event in enumerate(found):
            try:
                transport.emit(event)
            except OSError as error:  # all errors of `requests` are
                taken = f"{number} of {len(found)} events were taken"
                raise MachineError(f"cannot send lineage to {redacted(url)}: {error} ({taken})") from error
    finally:
        transport.close()


def _event(run: LineageRun, state: RunState, milliseconds: int) -> RunEvent:
    is_end = state is not RunState.START
    return RunEvent(
        eventTime=datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds"),
        producer=PRODUCER,
        eventType=state,
        run=Run(runId=run.job.run_id, facets=_run_facets(run) | (_error(run) if is_end else {})),
        job=Job(namespace=run.job.namespace, name=run.job.name, facets={"jobType": _job_type(run)}),
        inputs=[_input(each, run) for each in run.inputs],
        outputs=[_output(each, run, is_end=is_end) for each in run.outputs],
    )


def _run_facets(run: LineageRun) -> dict[str, RunFacet]:
    facets: dict[str, RunFacet] = {}
    if run.spark_version:
        engine = processing_engine_run.ProcessingEngineRunFacet(version=run.spark_version, name="spark")
        facets["processing_engine"] = _produced(engine)
    if run.parent is not None:
        parent = parent_run.Run(runId=run.parent.run_id)
        job = parent_run.Job(namespace=run.parent.namespace, name=run.parent.name)
        facets["parent"] = _produced(parent_run.ParentRunFacet(run=parent, job=job))
    return facets


def _error(run: LineageRun) -> dict[str, RunFacet]:
    if run.error is None:
        return {}
    facet = error_message_run.ErrorMessageRunFacet(message=run.error, programmingLanguage="JAVA")
    return {"errorMessage": _produced(facet)}


def _job_type(run: LineageRun) -> job_type_job.JobTypeJobFacet:
    kind = "STREAMING" if run.kind == STREAM else "BATCH"
    facet = job_type_job.JobTypeJobFacet(processingType=kind, integration="SPARK", jobType=run.kind)
    return _produced(facet)


def _input(dataset: Dataset, run: LineageRun) -> InputDataset:
    return InputDataset(namespace=dataset.namespace, name=dataset.name, facets=_facets(dataset, run))


def _output(dataset: Dataset, run: LineageRun, *, is_end: bool) -> OutputDataset:
    statistics: dict[str, Any] = {}
    if is_end and (run.rows is not None or run.bytes is not None):
        facet = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=run.rows, size=run.bytes)
        statistics["outputStatistics"] = _produced(facet)
    return OutputDataset(
        namespace=dataset.namespace, name=dataset.name, facets=_facets(dataset, run), outputFacets=statistics
    )


def _facets(dataset: Dataset, run: LineageRun) -> dict[str, DatasetFacet]:
    """The columns of a dataset, what they are made of, and its name in the catalog of the application."""
    facets: dict[str, DatasetFacet] = {}
    if dataset.columns:
        fields = [schema_dataset.SchemaDatasetFacetFields(name=each.name, type=each.type) for each in dataset.columns]
        facets["schema"] = _produced(schema_dataset.SchemaDatasetFacet(fields=fields))
    if dataset.origins:
        facets["columnLineage"] = _produced(_column_lineage(dataset))
    if dataset.table:
        name = symlinks_dataset.Identifier(namespace=run.job.namespace, name=dataset.table, type="TABLE")
        facets["symlinks"] = _produced(symlinks_dataset.SymlinksDatasetFacet(identifiers=[name]))
    return facets


def _column_lineage(dataset: Dataset) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    fields = {
        column: column_lineage_dataset.Fields(
            [column_lineage_dataset.InputField(*each, transformations=None) for each in origins]
        )
        for column, origins in dataset.origins
    }
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields, dataset=None)


def _produced(facet: Facet) -> Facet:
    """A facet of this program: the client names itself as its producer."""
    return attr.evolve(facet, producer=PRODUCER)
