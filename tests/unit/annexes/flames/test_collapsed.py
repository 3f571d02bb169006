from spark_app.annexes.flames import collapsed
from spark_app.stack_samples.stack_profile import profile
from tests.unit.stack_samples.made import TASK, Taken, run


def test_a_line_is_a_stack_with_its_time() -> None:
    """As `flamegraph.pl` splits it: by semicolons, and at the last space; names keep neither."""
    taken = Taken()
    taken.process()
    taken.process("python_worker", interval_ms=20.0)
    taken.add(1100, TASK, "a.B;c\nd", times=3)
    taken.add(1100, "main@worker.py:9", "score@job.py:3!", process=1, task=1, times=2)
    found = profile(taken.done(), [run(1, 3, 1000, 2000)])
    assert [*collapsed.lines(found, found.parts[3, 0])] == [
        "JVM;org.apache.spark.executor.Executor$TaskRunner.run;a.B:c d 30",
        "Python;main;score (job.py:3) 40",
    ]
