"""A run may last a month: its folder stays bounded, and a kill at its end still closes exactly the open spans."""

import signal
from pathlib import Path
from typing import Final

from spark_app.telemetry import crash_recovery
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.run_files import LOGS, METRICS, SEGMENT_BYTES, SEGMENTS, STARTED, TRACES, segments
from spark_app.telemetry.run_files_reader import RunFilesReader
from tests.unit.telemetry.memory import process

SPANS: Final = 100_000
PROGRAM: Final = """
import logging
log = logging.getLogger("spark_app.execution.run")
with telemetry.run(identity) as run, run.step("query", kind="read"):
    for number in range(SPANS):
        with run.step(f"batch {number}", kind="write", table="bronze") as step:
            step.count(rows_written=5)
        if number % 100 == 0:
            log.info("batch %d", number)
            run.export_metrics()
    with run.step("last", kind="publish"):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_of_100_000_spans_is_bounded_and_recovered(tmp_path: Path) -> None:
    """The sizes are those that a user gets; the newest spans are there, and what the kill left open is ended once."""
    killed = process(PROGRAM.replace("SPANS", str(SPANS)), tmp_path, seconds=600)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    sizes = {name: [path.stat().st_size for path in segments(tmp_path, name)] for name in (TRACES, METRICS, LOGS)}
    assert len(sizes[TRACES]) == SEGMENTS
    assert all(sum(each) <= SEGMENTS * SEGMENT_BYTES for each in sizes.values())
    assert (tmp_path / STARTED).stat().st_size <= SEGMENT_BYTES
    run = crash_recovery.end(tmp_path, lambda *_: True, errors=TelemetryErrors())
    assert run is not None
    assert [span.name for span in run.spans] == ["run etl.daily_sales", "step query", "step last"]
    assert run.skipped == 0
    steps = RunFilesReader(tmp_path).steps()
    assert [step.name for step in steps[:2]] == ["run etl.daily_sales", "step query"]
    assert steps[-1].name == "step last"
    assert all(step.ended for step in steps)
    numbers = [int(step.name.removeprefix("step batch ")) for step in steps[2:-1]]
    assert numbers == list(range(SPANS - len(numbers), SPANS))
