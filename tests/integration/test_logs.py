"""A run's log tells what became of it, and every line, ours or Spark's, leads to its trace."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from app.errors import QualityGateError
from app.records import RunRecord
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
    """The one of the sales."""
    return runs[1]


def texts(run: RunRecord) -> list[tuple[str, str]]:
    """Severity and text of the log lines of a run, in order."""
    return [(line["severityText"], line["body"]["stringValue"]) for line in file_logs(run.folder / "logs.jsonl")]


def test_every_step_is_told_within_its_span(sales: RunRecord) -> None:
    """One line per step, with the ids of its span."""
    spans = file_spans(sales.folder / "traces.jsonl")
    steps = {span["spanId"]: name.removeprefix("step ") for name, span in spans.items() if name.startswith("step ")}
    lines = file_logs(sales.folder / "logs.jsonl")
    told = [(steps[line["spanId"]], line["body"]["stringValue"]) for line in lines if line["spanId"] in steps]
    assert {line["traceId"] for line in lines} == {sales.trace_id}
    assert sorted(text.split(":")[0] for _, text in told) == sorted(steps.values())
    assert all(text.startswith(f"{step}: done in") for step, text in told)


def test_spans_have_the_rows_and_bytes_that_are_known(runs: list[RunRecord]) -> None:
    """A run's span has the rows of its record. Spark reads while it writes: a step that reads knows its bytes only."""
    written = {"pipeline.rows.written", "pipeline.bytes.written"}
    for run in runs:
        spans = {name: plain(span["attributes"]) for name, span in file_spans(run.folder / "traces.jsonl").items()}
        told = spans.pop(f"run {run.pipeline}")
        rows = {"read": run.rows_read, "written": run.rows_written, "quarantined": run.rows_quarantined}
        rows |= {"duplicate": run.rows_duplicate, "unaccounted": 0}
        assert {name: told[f"pipeline.rows.{name}"] for name in rows} == rows
        known = {
            step["pipeline.step.kind"]: {each for each in step if ".rows." in each or ".bytes." in each}
            for step in spans.values()
        }
        assert known == {"read": {"pipeline.bytes.read"}, "transform": set(), "write": written, "publish": written}


def test_what_is_worth_telling_is_a_warning_and_the_end_is_told(sales: RunRecord) -> None:
    """What stands on the terminal stands in the log, too."""
    assert ("WARN", "new columns upstream, kept in bronze only: loyalty_points") in texts(sales)
    assert texts(sales)[-1] == ("INFO", "run succeeded")


def test_a_run_that_fails_says_why(home: Home) -> None:
    """The last line is the error, with its type."""
    home.deliver("transactions", [])
    home.deliver("customers", [customer(1), customer(2, segment="pirate")])
    with pytest.raises(QualityGateError) as raised:
        home.run()
    (run,) = raised.value.results  # type: ignore[attr-defined]
    assert texts(run)[-1] == ("ERROR", f"run ended by QualityGateError: {raised.value}")


def test_lines_of_the_driver_lead_to_the_trace(runs: list[RunRecord], spark: SparkSession) -> None:
    """What Spark logs while it works for a step has the step's trace id; afterwards nothing has it."""
    jvm: Any = spark.sparkContext._jvm
    log = Path(jvm.java.lang.System.getProperty("app.log.file")).read_text(encoding="utf-8")
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    told = [line.get("context") for line in lines if "locally checkpointed" in line["msg"]]  # by the MERGE of customers
    assert {"mdc.trace_id": runs[0].trace_id} in told
    assert None not in told
    assert jvm.org.slf4j.MDC.get("mdc.trace_id") is None
