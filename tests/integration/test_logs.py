"""The log of a run says how it went, and each line of the program or of Spark leads to its trace."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.errors import QualityGateError
from spark_app.runs.run_record import RunRecord
from spark_app.spark import job_properties
from tests.integration.home import Home, customer
from tests.unit.telemetry.memory import file_logs, file_spans, plain


@pytest.fixture(scope="module")
def runs(new_home: Callable[[str], Home]) -> list[RunRecord]:
    """A good run of each pipeline, over a day with a new column."""
    home = new_home("logs")
    home.made(rows=400)
    home.forgive()
    home.deliver("transactions", [{"transaction_id": "T-new", "loyalty_points": 7}], name="b.json")
    return home.run()


@pytest.fixture(scope="module")
def sales(runs: list[RunRecord]) -> RunRecord:
    """The run of etl.daily_sales."""
    return runs[1]


def texts(run: RunRecord) -> list[tuple[str, str]]:
    """Severity and text of the log lines of a run, in order."""
    return [(line["severityText"], line["body"]["stringValue"]) for line in file_logs(run.folder / "logs.jsonl")]


def test_every_step_is_logged_within_its_span(sales: RunRecord) -> None:
    """One line per step, with the ids of its span."""
    spans = file_spans(sales.folder / "traces.jsonl")
    steps = {span["spanId"]: name.removeprefix("step ") for name, span in spans.items() if name.startswith("step ")}
    lines = file_logs(sales.folder / "logs.jsonl")
    texts_of_steps = [(steps[line["spanId"]], line["body"]["stringValue"]) for line in lines if line["spanId"] in steps]
    assert {line["traceId"] for line in lines} == {sales.trace_id}
    assert sorted(text.split(":")[0] for _, text in texts_of_steps) == sorted(steps.values())
    assert all(text.startswith(f"{step}: done in") for step, text in texts_of_steps)


def test_spans_have_the_known_rows_and_bytes(runs: list[RunRecord]) -> None:
    """The span of a run has the rows of its record. A step that reads has bytes only: Spark reads while it writes."""
    written = {"pipeline.rows.written", "pipeline.bytes.written"}
    for run in runs:
        spans = {name: plain(span["attributes"]) for name, span in file_spans(run.folder / "traces.jsonl").items()}
        of_run = spans.pop(f"run {run.pipeline}")
        rows = {"read": run.counts["read"], "written": run.counts["published"], "unaccounted": 0}
        rows |= {"quarantined": run.counts["quarantined"], "duplicate": run.counts["duplicates"]}
        assert {name: of_run[f"pipeline.rows.{name}"] for name in rows} == rows
        known = {
            step["pipeline.step.kind"]: {each for each in step if ".rows." in each or ".bytes." in each}
            for step in spans.values()
        }
        assert known == {"read": {"pipeline.bytes.read"}, "transform": set(), "write": written, "publish": written}


def test_notes_are_warnings_and_the_end_is_logged(sales: RunRecord) -> None:
    """The notes of the terminal are in the log."""
    assert ("WARN", "new columns upstream, kept in bronze only: loyalty_points") in texts(sales)
    assert texts(sales)[-1] == ("INFO", "run succeeded")


def test_a_failed_run_logs_the_error(home: Home) -> None:
    """The last line is the error, with its type."""
    home.deliver("transactions", [])
    home.deliver("customers", [customer(1), customer(2, segment="pirate")])
    with pytest.raises(QualityGateError) as raised:
        home.run()
    (run,) = raised.value.results  # type: ignore[attr-defined]
    assert texts(run)[-1] == ("ERROR", f"run ended by QualityGateError: {raised.value}")


def test_lines_of_the_driver_lead_to_the_trace(spark: SparkSession) -> None:
    """What the driver logs during a step has the trace id of the step; later lines do not."""
    jvm: Any = spark.sparkContext._jvm
    slf4j = jvm.org.slf4j.LoggerFactory.getLogger("org.apache.spark.test")
    with job_properties.step_properties(spark, "a step", traceparent=None, trace_id="a" * 32):
        slf4j.error("a line during the step")
    slf4j.error("a line after the step")
    log = Path(jvm.java.lang.System.getProperty("app.log.file")).read_text(encoding="utf-8")
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    contexts = {line["msg"]: line.get("context") for line in lines if line["logger"] == "test"}
    assert contexts == {"a line during the step": {"mdc.trace_id": "a" * 32}, "a line after the step": None}
