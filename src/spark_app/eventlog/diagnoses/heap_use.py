"""What executors use of their heap."""

from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model import memory_settings
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.executors import Executor


def measured(app: Application, limits: Thresholds) -> list[Executor]:
    """Executors with enough memory reports."""
    executors = app.executors.values()
    return [executor for executor in executors if executor.peak_heap and executor.heap_samples >= limits.memory_samples]


def executor_memory(app: Application) -> int | None:
    """The configured heap of an executor in bytes; None if the setting is invalid, or the log has no settings."""
    return memory_settings.heap(app.properties) if app.properties else None
