"""Sends samples of stacks as profiles over OTLP, if `OTEL_PROFILES_EXPORTER=otlp` asks for it."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from spark_app.errors import MachineError
from spark_app.eventlog.labels import LabelSources
from spark_app.eventlog.reader import Reading
from spark_app.settings import Settings, process_environment
from spark_app.stack_samples import samples, task_runs
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import Deadline, all_done, profiles_exporter, resource_attributes
from spark_app.telemetry.logs import quiet_sdk
from spark_app.telemetry.setup import is_off

STALLED_SECONDS: Final = 2.0
"""How long a later request may take, after the endpoint has accepted one."""


def send(readings: Sequence[Reading], settings: Settings, *, patience: float, note: Callable[[str], None]) -> None:
    """Sends the samples beside the logs of applications; what hinders it is a remark, and changes nothing else.

    Args:
        readings: The applications.
        settings: Name the environment and the labels.
        patience: Seconds that the endpoint may take for the first request.
        note: Is called with the remark.
    """
    variables, errors = process_environment(), TelemetryErrors()
    exporter = None if is_off(variables) else profiles_exporter(variables, errors=errors)
    is_sent = exporter is None and not errors
    if exporter is not None:
        quiet_sdk(errors)
        is_sent = errors.guard("they were not sent", _send_all, exporter, readings, settings, patience, errors)
        errors.guard("the exporter did not end", exporter.shutdown)
    if not is_sent:
        note(f"stack samples were not sent as profiles: {next(iter(errors))}")


def _send_all(
    exporter: Any, readings: Sequence[Reading], settings: Settings, patience: float, errors: TelemetryErrors
) -> None:
    """Sends request by request.

    Raises:
        MachineError: One was not accepted, or not in time; such a request ends with the exporter.
    """
    for reading in readings:
        for request in _requests(reading, settings):
            accepted: list[bool] = []
            call = partial(_send, exporter, request, accepted)
            if not all_done([call], deadline=Deadline(patience), errors=errors):
                raise MachineError("the endpoint did not answer in time")
            if not any(accepted):
                raise MachineError("the endpoint did not accept them")
            patience = STALLED_SECONDS


def _send(exporter: Any, request: Any, accepted: list[bool]) -> None:
    accepted.append(exporter.export(request))


def _requests(reading: Reading, settings: Settings) -> Iterator[Any]:
    """The samples of an application as requests; none where there are none.

    Raises:
        InputError: The log cannot be read.
        OSError: The samples cannot be read.
        ValueError: They are something else.
    """
    file = samples.file_of(reading.log)
    if not file.is_file():
        return
    from spark_app.eventlog.bridge.export import resource_of  # what only an export needs takes a quarter of a second
    from spark_app.eventlog.bridge.metrics_aggregator import UNNAMED
    from spark_app.stack_samples import otlp
    from spark_app.telemetry import profiles

    labels = LabelSources.configured(settings, resource_attributes())
    resource = resource_of(labels.labelled_name(reading.app, unnamed=UNNAMED), environment=settings.environment)
    found = otlp.profiles(samples.read(file), task_runs.of_log(reading.log), reading.app)
    yield from profiles.requests(found, resource)
