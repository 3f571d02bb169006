from pathlib import Path

import pytest

from spark_app.telemetry.environment_variables import drop_wrong
from tests.unit.telemetry.memory import file_spans, process


def test_variables_that_make_the_sdk_raise_are_removed() -> None:
    """A limit is a number or `unset`, the exemplar filter one of three; an empty one is removed without a line."""
    right = {
        "OTEL_SPAN_EVENT_COUNT_LIMIT": "0",
        "OTEL_SPAN_LINK_COUNT_LIMIT": " unset ",
        "OTEL_METRICS_EXEMPLAR_FILTER": "always_off",
        "OTEL_SERVICE_NAME": "many",
    }
    variables = {**right, "OTEL_ATTRIBUTE_COUNT_LIMIT": "many", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": ""}
    assert drop_wrong(variables) == ["OTEL_ATTRIBUTE_COUNT_LIMIT is ignored: OpenTelemetry does not accept 'many'"]
    assert variables == right


@pytest.mark.parametrize(
    "name",
    [
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_METRICS_EXEMPLAR_FILTER",
    ],
)
def test_a_wrong_variable_does_not_change_the_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK raises on these when it is imported or set up; the run succeeds, and one error names the variable."""
    monkeypatch.setenv(name, "many")
    ended = process("with telemetry.run(identity): pass\nprint(*telemetry.errors)", tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{name} is ignored: OpenTelemetry does not accept 'many'\n"
    assert list(file_spans(tmp_path / "traces.jsonl")) == ["run etl.daily_sales"]
