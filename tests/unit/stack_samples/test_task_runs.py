from pathlib import Path

from spark_app.stack_samples.task_runs import ENDLESS, TaskRun, of_lines, of_log
from tests.unit.eventlog import log
from tests.unit.eventlog.logs import write


def test_tasks_have_the_times_of_the_log(tmp_path: Path) -> None:
    """One that has no end there has none; other lines, and damaged ones, are passed over."""
    ended, running = log.task(1, 3, seconds=0.5), log.task(2, 3, attempt=1)
    running["Task Info"] |= {"Executor ID": "7", "Finish Time": 0}
    lines = [log.started(), *log.starts([ended, running]), ended, {"Event": "SparkListenerTaskEnd"}, log.ended()]
    assert of_log(write(tmp_path / "log", lines)) == [
        TaskRun(1, (3, 0), "0", 2200, 2700, "ResultTask"),
        TaskRun(2, (3, 1), "7", 2200, ENDLESS, "ResultTask"),
    ]


def test_a_task_that_loses_its_output_later_keeps_its_first_end() -> None:
    """Spark logs its end a second time."""
    task = log.task(1, 3, seconds=0.5)
    again = log.resubmitted(log.task(1, 3, seconds=5))
    assert [run.finished for run in of_lines(log.packed([task, again]))] == [2700]


def test_tasks_have_their_time_on_a_processor() -> None:
    """What Spark needed to deserialise them included, since their threads are sampled then, too."""
    task = log.task(1, 3)
    task["Task Metrics"] |= {"Executor CPU Time": 250_000_000, "Executor Deserialize CPU Time": 50_000_000}
    assert [run.cpu_ms for run in of_lines(log.packed([task]))] == [300.0]
