"""An open run is flushed while it lasts."""

import os
import threading
from functools import partial
from pathlib import Path
from typing import Any, Final

from spark_app.telemetry.flushing import FLUSH_SECONDS, metric_export_seconds
from tests.polling import poll_until
from tests.unit.telemetry.memory import InMemory, file_logs, file_metrics, messages, total

ROUNDS: Final = 20


def has_total(folder: Path, count: int) -> bool:
    """Whether the folder of a run has as many rows read."""
    return total(folder, "pipeline.rows.read") == count


def gauge_points(folder: Path, name: str) -> list[Any]:
    """The points of a gauge in the folder of a run."""
    metrics = [metric for metric in file_metrics(folder / "metrics.jsonl") if metric["name"] == name]
    return [point["asDouble"] for metric in metrics for point in metric["gauge"]["dataPoints"]]


def test_an_open_run_is_flushed(flushed: InMemory) -> None:
    """Metrics are written and sent, errors are logged and the folder shows a sign of life while the run lasts."""
    folder = flushed.folder / "run-1"
    with flushed.run() as run:
        os.utime(folder / "started.jsonl", (0, 0))
        run.record(rows_read=7)
        flushed.telemetry._errors.add("the endpoint is gone")
        poll_until(lambda: total(folder, "pipeline.rows.read") == 7, "rows read in metrics.jsonl")
        poll_until(lambda: len(flushed.metrics_kept.kept) >= 2, "metrics at the endpoint")
        poll_until(lambda: len(file_logs(folder / "logs.jsonl")) == 1, "the error in logs.jsonl")
        poll_until(lambda: (folder / "started.jsonl").stat().st_mtime > 0, "a sign of life")
    assert messages(folder) == [("run-1", "telemetry: the endpoint is gone")]


def test_a_flush_neither_doubles_nor_loses_a_point(flushed: InMemory) -> None:
    """Deltas add up to what was counted, a gauge has one point for each time it was set, and no point is an idle 0."""
    folder = flushed.folder / "run-1"
    with flushed.run() as run:
        run.record_freshness("transactions", seconds=90.5, as_of=0)
        for count in range(1, ROUNDS + 1):
            run.record(rows_read=1)
            if count % 5 == 0:
                poll_until(partial(has_total, folder, count), f"{count} rows in metrics.jsonl")
        run.record(rows_read=1)
    assert total(folder, "pipeline.rows.read") == ROUNDS + 1
    assert flushed.values("pipeline.rows.read") == {("etl.daily_sales",): ROUNDS + 1}
    assert gauge_points(folder, "pipeline.data.freshness") == [90.5]
    assert len(gauge_points(folder, "pipeline.run.last_success.timestamp")) == 1
    zeros = [
        metric["name"]
        for metric in file_metrics(folder / "metrics.jsonl")
        if metric["name"] == "pipeline.rows.read" and metric["sum"]["dataPoints"][0]["asInt"] == "0"
    ]
    assert zeros == ["pipeline.rows.read"]


def test_one_thread_flushes_all_runs_within_5_s(flushed: InMemory) -> None:
    """However many runs are open, one daemon thread flushes them, by default within 5 s."""
    before = threading.enumerate()  # telemetry of earlier tests may still be ending its thread
    with flushed.run("first"), flushed.run("second"):
        threads = [
            thread for thread in threading.enumerate() if thread.name == "telemetry-flush" and thread not in before
        ]
        assert [thread.daemon for thread in threads] == [True]
    flushed.telemetry.close()
    threads[0].join(10)
    assert not threads[0].is_alive()
    assert FLUSH_SECONDS < 5


def test_the_standard_variable_sets_the_period() -> None:
    """OTEL_METRIC_EXPORT_INTERVAL is in milliseconds; a value that is no positive number is ignored."""
    texts = ("60000", "", "0", "soon", "-1")
    seconds = {text: metric_export_seconds({"OTEL_METRIC_EXPORT_INTERVAL": text}, default=7) for text in texts}
    assert seconds == {"60000": 60.0, **dict.fromkeys(("", "0", "soon", "-1"), 7)}
