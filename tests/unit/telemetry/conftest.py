import os
from pathlib import Path

import pytest

from tests.unit.telemetry.memory import InMemory


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of whoever runs the tests do not reach the SDK."""
    for name in tuple(os.environ):
        if name.startswith("OTEL_") or name in {"TRACEPARENT", "TRACESTATE"}:
            monkeypatch.delenv(name)


@pytest.fixture
def telemetry(tmp_path: Path) -> InMemory:
    """Telemetry that keeps what it would send."""
    return InMemory(tmp_path)


@pytest.fixture
def flushed(tmp_path: Path) -> InMemory:
    """Telemetry that flushes its runs often."""
    return InMemory(tmp_path, flush_seconds=0.01)
