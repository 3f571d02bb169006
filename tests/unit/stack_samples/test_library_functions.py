"""The functions in which a program without functions of its own spends its time."""

from spark_app.stack_samples.library_functions import hottest
from spark_app.stack_samples.stack_profile import profile
from tests.unit.stack_samples.made import TASK, Taken, run


def test_functions_of_libraries_have_their_own_time_and_that_of_what_they_call() -> None:
    """A recursion counts once; what waits, the user's functions, and what has few samples are left out."""
    taken = Taken()
    executor, worker = taken.process(), taken.process("python_worker")
    taken.add(2050, TASK, "a.Join.run", "a.Text.distance", process=executor, times=20)
    taken.add(2050, TASK, "a.Join.run", "a.Text.distance", "a.Text.distance", "a.Bytes.get", process=executor, times=30)
    taken.add(2050, TASK, "io.Queue.take", process=executor, state="waiting", times=50)
    taken.add(2050, "main@worker.py:9", "score@job.py:3!", process=worker, task=1, times=40)
    taken.add(2050, TASK, "a.Rare.run", process=executor, times=4)
    stacks = profile(taken.done(), [run(1, 0, 2000, 2400)])
    found = hottest(stacks, stacks.all, 8)
    assert [(each.label.function, each.itself.samples, each.total.samples) for each in found] == [
        ("a.Bytes.get", 30, 30),
        ("a.Text.distance", 20, 50),
    ]
    assert [each.label.function for each in hottest(stacks, stacks.all, 1)] == ["a.Bytes.get"]
