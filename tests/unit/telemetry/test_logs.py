import logging
from pathlib import Path
from typing import Final

import pytest
from opentelemetry._logs import SeverityNumber

from spark_app.telemetry.logs import severity
from tests.unit.telemetry.memory import InMemory, file_logs, plain, process

LOG: Final = logging.getLogger("spark_app.execution.run")


def test_a_record_has_the_ids_of_its_span_and_the_attributes_of_its_run(telemetry: InMemory) -> None:
    """A log line leads to its step and its run, in the file and at the backend."""
    with telemetry.run() as run, run.step("write bronze", kind="write") as step:
        LOG.warning("%d rows", 5, extra={"pipeline.table": "bronze", "ignored": object()})
    (kept,) = file_logs(telemetry.folder / "run-1" / "logs.jsonl")
    assert (kept["traceId"], kept["spanId"]) == (step.trace_id, step.span_id)
    assert (kept["severityText"], kept["severityNumber"], kept["body"]) == ("WARN", 13, {"stringValue": "5 rows"})
    assert plain(kept["attributes"]) == {
        "pipeline.name": "etl.daily_sales",
        "pipeline.run.id": "run-1",
        "pipeline.invocation.id": "0a1b2c3d4e5f",
        "pipeline.run.slice": "2024-01-01",
        "pipeline.table": "bronze",
        "code.file.path": __file__,
        "code.line.number": test_a_record_has_the_ids_of_its_span_and_the_attributes_of_its_run.__code__.co_firstlineno
        + 3,
    }
    (sent,) = telemetry.logs
    assert sent.instrumentation_scope is not None
    assert (sent.log_record.body, sent.instrumentation_scope.name) == ("5 rows", "spark_app.execution.run")
    assert f"{sent.log_record.span_id:016x}" == step.span_id


def test_an_exception_is_logged_with_its_bounded_message(telemetry: InMemory) -> None:
    """A log record has the same attributes of an exception as a span."""
    with telemetry.run():
        try:
            raise ValueError("x" * 5000)
        except ValueError:
            LOG.exception("it failed")
    attributes = plain(file_logs(telemetry.folder / "run-1" / "logs.jsonl")[0]["attributes"])
    assert attributes["exception.type"] == "ValueError"
    assert attributes["exception.message"] == "x" * 4096
    assert attributes["exception.message.truncated"] is True


def test_records_of_a_pipelines_own_loggers_are_collected(telemetry: InMemory) -> None:
    """With the ids of the step and at the level that they have; those of the SDK are not, or they would go round."""
    mine = logging.getLogger("shop.prices")
    with telemetry.run() as run, run.step("write bronze", kind="write") as step:
        mine.warning("price of %s is missing", "bread")
        mine.debug("too fine for the logger")
        logging.getLogger("opentelemetry.exporter").warning("cannot send")
    kept = file_logs(telemetry.folder / "run-1" / "logs.jsonl")
    assert (kept[0]["traceId"], kept[0]["spanId"]) == (step.trace_id, step.span_id)
    texts = ["price of bread is missing", "telemetry: opentelemetry.exporter: cannot send"]
    assert [line["body"]["stringValue"] for line in kept] == texts
    telemetry.telemetry.close()
    mine.warning("after the telemetry was closed")
    assert len(file_logs(telemetry.folder / "run-1" / "logs.jsonl")) == 2


def test_no_secret_is_logged(telemetry: InMemory) -> None:
    """Neither the message nor the attributes of an exception have it: others read the log store."""
    with telemetry.run():
        try:
            raise ValueError("no way to https://me:hunter2@store")
        except ValueError as error:
            LOG.exception("ended by %s, password=hunter2", error)
    (kept,) = file_logs(telemetry.folder / "run-1" / "logs.jsonl")
    text = "no way to https://(redacted)@store"
    assert kept["body"] == {"stringValue": f"ended by {text}, password=(redacted)"}
    assert plain(kept["attributes"])["exception.message"] == text
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
def test_a_level_maps_to_a_severity_of_opentelemetry(level: int, number: SeverityNumber, text: str) -> None:
    """WARNING is WARN and CRITICAL is FATAL there; a level between two is the lower one."""
    assert severity(level) == (number, text)


def test_nothing_reaches_the_terminal(tmp_path: Path) -> None:
    """Neither records of the program, nor those of the SDK, nor one with wrong arguments, which becomes an error."""
    ended = process(
        """
import logging
with telemetry.run(identity):
    logging.getLogger("spark_app.execution.run").error("hello")
    logging.getLogger("spark_app.execution.run").error("%d rows", "five")
    logging.getLogger("opentelemetry.sdk").error("a complaint")
telemetry.close()
logging.getLogger("opentelemetry.sdk").error("a complaint of a thread left behind")
lost, complaint = telemetry.errors
assert lost.startswith("a log record of spark_app.execution.run line "), lost
assert complaint == "opentelemetry.sdk: a complaint", complaint
""",
        tmp_path,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_close_restores_the_logger(telemetry: InMemory) -> None:
    """`close` restores handlers, propagation and level."""
    telemetry.telemetry.close()
    logger = logging.getLogger("spark_app")
    assert (logger.handlers, logger.propagate, logger.level) == ([], True, logging.NOTSET)


@pytest.mark.parametrize("first_closed", [0, 1])
def test_the_logger_is_restored_whichever_telemetry_is_closed_first(tmp_path: Path, first_closed: int) -> None:
    """One that is still open gets the records; when both are closed, the logger is as it was."""
    logger = logging.getLogger("spark_app")
    both = [InMemory(tmp_path), InMemory(tmp_path)]
    still_open = both[1 - first_closed]
    both[first_closed].telemetry.close()
    LOG.warning("hello")
    assert [record.log_record.body for record in still_open.logs] == ["hello"]
    assert (logger.handlers, logger.propagate, logger.level) == ([], True, logging.NOTSET)


def test_debug_records_are_dropped(telemetry: InMemory) -> None:
    """Records below INFO are not kept."""
    with telemetry.run():
        LOG.debug("hello")
    assert (telemetry.folder / "run-1" / "logs.jsonl").read_text() == ""
