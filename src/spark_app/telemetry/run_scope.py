"""Which run a piece of code belongs to: OpenTelemetry's context carries the run beside the current span.

A thread starts with an empty context. It belongs to a run if it was started through
`contextvars.copy_context().run`, opens a step of the run, or enters `RunTelemetry.attach()`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from opentelemetry import context
from opentelemetry.context import Context

from spark_app.telemetry.errors import RunErrors
from spark_app.telemetry.run_files import RunFiles

_KEY: Final = context.create_key("app-run")


@dataclass(slots=True, eq=False)
class RunScope:
    """What log records need of an open run.

    Attributes:
        attributes: The attributes that identify the run.
        errors: The telemetry errors of the run.
        files: The files of the run; None before it starts, after it ended, and where OpenTelemetry is disabled.
    """

    attributes: Mapping[str, str]
    errors: RunErrors
    files: RunFiles | None = field(default=None)
    is_open: bool = False

    def within(self, parent: Context) -> Context:
        """A context whose code belongs to this run."""
        return context.set_value(_KEY, self, parent)


def current_run(within: Context | None = None) -> RunScope | None:
    """The open run that a context (by default the current one) belongs to."""
    scope = context.get_value(_KEY, within)
    return scope if isinstance(scope, RunScope) and scope.is_open else None
