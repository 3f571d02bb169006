"""Several runs are open in one process at a time."""

import contextvars
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.unit.telemetry.memory import InMemory, file_spans, messages, total

LOG: Final = logging.getLogger("spark_app.execution.run")
RUNS: Final = 6
ROUNDS: Final = 20


def in_thread(work: Callable[[], object]) -> None:
    """Runs a function in a thread, to its end."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_runs_in_threads_do_not_mix(flushed: InMemory) -> None:
    """Spans, log records and metrics of a run are in its own folder, all of them, and in no other."""
    are_all_open = threading.Barrier(RUNS)

    def work(number: int) -> None:
        with flushed.run(f"run-{number}", pipeline=f"etl.p{number}") as run:
            are_all_open.wait()
            for _ in range(ROUNDS):
                with run.step(f"step {number}", kind="read", table=f"t{number}"):
                    LOG.warning("in %d", number)
                run.record(rows_read=number)
            are_all_open.wait()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(RUNS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert flushed.telemetry.errors == []
    for number in range(RUNS):
        folder = flushed.folder / f"run-{number}"
        for name in ("started.jsonl", "traces.jsonl"):
            assert set(file_spans(folder / name)) == {f"run etl.p{number}", f"step step {number}"}
        assert messages(folder) == [(f"run-{number}", f"in {number}")] * ROUNDS
        assert total(folder, "pipeline.rows.read") == number * ROUNDS
        assert flushed.values("pipeline.rows.read")[f"etl.p{number}",] == number * ROUNDS


def test_runs_in_one_thread_do_not_mix(telemetry: InMemory) -> None:
    """A run that is opened within another one is the current one until it ends."""
    with telemetry.run("outer", pipeline="etl.outer") as outer:
        with telemetry.run("inner", pipeline="etl.inner"):
            LOG.warning("inner")
            with outer.step("late", kind="read"):
                LOG.warning("a step of outer")
        LOG.warning("outer")
    assert messages(telemetry.folder / "inner") == [("inner", "inner")]
    assert messages(telemetry.folder / "outer") == [("outer", "a step of outer"), ("outer", "outer")]
    spans = file_spans(telemetry.folder / "outer" / "traces.jsonl")
    assert set(spans) == {"run etl.outer", "step late"}
    assert spans["step late"]["parentSpanId"] == spans["run etl.outer"]["spanId"]


def test_runs_with_one_parent_trace_do_not_mix(tmp_path: Path) -> None:
    """A traced scheduler gives all runs of a process one trace id: a step still belongs to the run that opened it."""
    memory = InMemory(tmp_path, variables={"TRACEPARENT": f"00-{'ab' * 16}-{'cd' * 8}-01"})
    outer, inner = memory.run("outer", pipeline="etl.outer"), memory.run("inner", pipeline="etl.inner")
    with outer, inner, outer.step("read", kind="read"):
        pass
    spans = file_spans(tmp_path / "outer" / "traces.jsonl")
    memory.telemetry.close()
    assert spans["step read"]["parentSpanId"] == spans["run etl.outer"]["spanId"]


def test_a_thread_belongs_to_the_run_whose_context_it_has(telemetry: InMemory) -> None:
    """A copied context, a step and `attach` all name the run; a thread with none of them belongs to no run."""
    with telemetry.run() as run:

        def attached() -> None:
            with run.attach():
                LOG.warning("attached")

        def within_a_step() -> None:
            with run.step("read", kind="read"):
                LOG.warning("in a step")

        copied = contextvars.copy_context()
        in_thread(lambda: copied.run(LOG.warning, "copied"))
        in_thread(attached)
        in_thread(within_a_step)
        in_thread(lambda: LOG.warning("of no run"))
    LOG.warning("after the run")
    texts = ["copied", "attached", "in a step"]
    assert messages(telemetry.folder / "run-1") == [("run-1", text) for text in texts]
    assert [record.log_record.body for record in telemetry.logs] == [*texts, "of no run", "after the run"]


def test_errors_of_a_run_are_in_its_own_log(telemetry: InMemory) -> None:
    """A file that cannot be written concerns one run; an endpoint that does not answer concerns all open ones."""
    first, second = telemetry.run("first"), telemetry.run("second")
    (telemetry.folder / "first" / "metrics.jsonl").mkdir()
    with first, second:
        telemetry.telemetry._errors.add("the endpoint is gone")
    errors = [text for _, text in messages(telemetry.folder / "first")]
    assert sorted(text.split(":")[1].split(" /")[0] for text in errors) == [" cannot write", " the endpoint is gone"]
    assert messages(telemetry.folder / "second") == [("second", "telemetry: the endpoint is gone")]
