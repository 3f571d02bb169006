import logging
from pathlib import Path
from typing import Final

import pytest
from opentelemetry._logs import SeverityNumber

from app.telemetry.logs import severity
from tests.unit.telemetry.memory import InMemory, file_logs, plain, process

LOG: Final = logging.getLogger("app.runner")


def test_a_record_has_the_ids_of_its_span_and_the_facts_of_its_run(telemetry: InMemory) -> None:
    """From a log line one gets to its step and its run, in the file and at the backend."""
    with telemetry.run() as run, run.step("write bronze", kind="write") as step:
        LOG.warning("%d rows", 5, extra={"pipeline.table": "bronze", "ignored": object()})
    (kept,) = file_logs(telemetry.folder / "run-1" / "logs.jsonl")
    assert (kept["traceId"], kept["spanId"]) == (step.trace_id, step.span_id)
    assert (kept["severityText"], kept["severityNumber"], kept["body"]) == ("WARN", 13, {"stringValue": "5 rows"})
    assert plain(kept["attributes"]) == {
        "pipeline.name": "etl.daily_sales",
        "pipeline.run.id": "run-1",
        "pipeline.invocation.id": "0a1b2c3d4e5f",
        "pipeline.run.date": "2024-01-01",
        "pipeline.table": "bronze",
    }
    (sent,) = telemetry.logs
    assert sent.instrumentation_scope is not None
    assert (sent.log_record.body, sent.instrumentation_scope.name) == ("5 rows", "app.runner")
    assert f"{sent.log_record.span_id:016x}" == step.span_id


def test_an_exception_is_logged_with_its_bounded_message(telemetry: InMemory) -> None:
    """A log record of an exception carries what a span does, no more."""
    with telemetry.run():
        try:
            raise ValueError("x" * 5000)
        except ValueError:
            LOG.exception("it failed")
    attributes = plain(file_logs(telemetry.folder / "run-1" / "logs.jsonl")[0]["attributes"])
    assert attributes["exception.type"] == "ValueError"
    assert attributes["exception.message"] == "x" * 4096
    assert attributes["exception.message.truncated"] is True


def test_no_secret_is_logged(telemetry: InMemory) -> None:
    """Neither in a line nor in what it says of an exception: logs go to a store that others read."""
    with telemetry.run():
        try:
            raise ValueError("no way to https://me:hunter2@store")
        except ValueError as error:
            LOG.exception("ended by %s, password=hunter2", error)
    (kept,) = file_logs(telemetry.folder / "run-1" / "logs.jsonl")
    told = "no way to https://(redacted)@store"
    assert kept["body"] == {"stringValue": f"ended by {told}, password=(redacted)"}
    assert plain(kept["attributes"])["exception.message"] == told
    assert "hunter2" not in str(kept)


@pytest.mark.parametrize(
    ("level", "number", "text"),
    [
        (logging.DEBUG, SeverityNumber.DEBUG, "DEBUG"),
        (logging.INFO, SeverityNumber.INFO, "INFO"),
        (25, SeverityNumber.INFO, "INFO"),
        (logging.WARNING, SeverityNumber.WARN, "WARN"),
        (logging.ERROR, SeverityNumber.ERROR, "ERROR"),
        (logging.CRITICAL, SeverityNumber.FATAL, "FATAL"),
    ],
)
def test_a_level_has_opentelemetrys_number_and_text(level: int, number: SeverityNumber, text: str) -> None:
    """WARNING is WARN and CRITICAL is FATAL there; a level between two is the lower one."""
    assert severity(level) == (number, text)


def test_nothing_reaches_the_terminal(tmp_path: Path) -> None:
    """Not our records, not the SDK's complaints, not a record with wrong arguments, which is told as a problem."""
    ended = process(
        """
import logging
with telemetry.run(facts):
    logging.getLogger("app.runner").error("hello")
    logging.getLogger("app.runner").error("%d rows", "five")
    logging.getLogger("opentelemetry.sdk").error("a complaint")
telemetry.close()
logging.getLogger("opentelemetry.sdk").error("a complaint of a thread left behind")
lost, complaint = telemetry.problems
assert lost.startswith("a log record of app.runner line "), lost
assert complaint == "opentelemetry.sdk: a complaint", complaint
""",
        tmp_path,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_our_logger_is_put_back(telemetry: InMemory) -> None:
    """After the end, logging is as it was before."""
    telemetry.telemetry.close()
    logger = logging.getLogger("app")
    assert (logger.handlers, logger.propagate, logger.level) == ([], True, logging.NOTSET)


def test_debug_is_left_out(telemetry: InMemory) -> None:
    """Records below INFO are not kept."""
    with telemetry.run():
        LOG.debug("hello")
    assert (telemetry.folder / "run-1" / "logs.jsonl").read_text() == ""
