from spark_app.stack_samples.attribution import places
from spark_app.stack_samples.samples import Span
from tests.unit.stack_samples.made import MAP, RESULT, TASK, Taken, run


def taken() -> Taken:
    """Samples of the JVM of executor 1."""
    new = Taken()
    new.process()
    return new


def test_a_sample_of_a_task_belongs_to_the_only_stage_that_runs_on_its_executor() -> None:
    """Whatever runs on other executors."""
    samples = taken()
    samples.add(1500, TASK, "a.B.c")
    tasks = [run(1, 3, 1000, 2000), run(2, 3, 1200, 1900), run(3, 4, 1000, 2000, executor="2")]
    assert places(samples.done(), tasks) == [(3, 0)]


def test_threads_without_a_task_belong_to_no_stage() -> None:
    """Of an executor and of the driver, which in local mode is one; and the Python of the driver."""
    samples = taken()
    driver, python = samples.process("driver", "driver"), samples.process("python_driver", None)
    samples.add(1500, "io.Net.poll")
    samples.add(1500, "plan.Rule.apply", process=driver)
    samples.add(1500, TASK, "a.B.c", process=driver)
    samples.add(1500, "main@job.py:1!", process=python)
    tasks = [run(1, 3, 1000, 2000), run(2, 4, 1000, 2000, executor="driver")]
    assert places(samples.done(), tasks) == ["executor", "driver", (4, 0), "driver"]


def test_samples_before_the_first_task_and_after_the_last_are_of_no_known_stage() -> None:
    """Between two tasks, too: beyond what the messages of tasks take, nothing is rounded to the nearest."""
    samples = taken()
    for at in (979, 980, 2020, 2021, 2979, 2980, 4020, 4021):
        samples.add(at, TASK)
    tasks = [run(1, 3, 1000, 2000), run(2, 4, 3000, 4000)]
    known = [(3, 0), (3, 0), "unknown", "unknown", (4, 0), (4, 0)]
    assert places(samples.done(), tasks) == ["unknown", *known, "unknown"]


def test_threads_are_told_apart_where_two_stages_run_at_once() -> None:
    """The thread that goes on when one task has ended ran the other all the time, and its neighbour the first."""
    samples = taken()
    samples.add(1100, TASK, thread=1)
    samples.add(1100, TASK, thread=2)
    samples.add(1800, TASK, thread=2)
    tasks = [run(1, 3, 1000, 1500), run(2, 4, 1000, 2000)]
    assert places(samples.done(), tasks) == [(3, 0), (4, 0), (4, 0)]


def test_what_follows_from_one_thread_is_carried_on_to_the_others() -> None:
    """A chain: each task that is placed leaves one thread fewer for the next."""
    samples = taken()
    for thread in (1, 2, 3):
        samples.add(1100, TASK, thread=thread)
    samples.add(1350, TASK, thread=2)
    samples.add(1350, TASK, thread=3)
    samples.add(1800, TASK, thread=3)
    tasks = [run(1, 3, 1000, 1200), run(2, 4, 1000, 1500), run(3, 5, 1000, 2000)]
    assert places(samples.done(), tasks) == [(3, 0), (4, 0), (5, 0), (4, 0), (5, 0), (5, 0)]


def test_a_thread_runs_no_task_beside_the_one_that_it_is_known_to_run() -> None:
    """Also where it has no sample while both run: what it did after the first is of a task that began later."""
    samples = taken()
    samples.add(1100, TASK, thread=1)
    samples.add(2100, TASK, thread=1)
    tasks = [run(1, 3, 1000, 1500), run(2, 4, 1400, 2500), run(3, 5, 1600, 2500)]
    assert places(samples.done(), tasks) == [(3, 0), (5, 0)]


def test_the_class_of_the_task_tells_stages_apart() -> None:
    """Two tasks that run from the same moment to the same moment, of which one writes a shuffle."""
    samples = taken()
    samples.add(1500, TASK, RESULT, thread=1)
    samples.add(1500, TASK, MAP, thread=2)
    tasks = [run(1, 3, 1000, 2000, kind="ResultTask"), run(2, 4, 1000, 2000, kind="ShuffleMapTask")]
    assert places(samples.done(), tasks) == [(3, 0), (4, 0)]


def test_what_cannot_be_told_is_not_guessed() -> None:
    """Two tasks of one class with the same times."""
    samples = taken()
    samples.add(1500, TASK, RESULT, thread=1)
    samples.add(1500, TASK, RESULT, thread=2)
    tasks = [run(1, 3, 1000, 2000, kind="ResultTask"), run(2, 4, 1000, 2000, kind="ResultTask")]
    assert places(samples.done(), tasks) == ["unknown", "unknown"]


def test_the_pauses_of_threads_tell_stages_apart() -> None:
    """Two tasks of one class that overlap all the time of the samples."""
    samples = taken()
    samples.add(1500, TASK, RESULT, thread=1)
    samples.add(1500, TASK, RESULT, thread=2)
    samples.spans += [Span(0, 1, 1004.0, 1990.0), Span(0, 2, 1052.0, 2040.0)]
    tasks = [run(1, 3, 1000, 2000, kind="ResultTask"), run(2, 4, 1050, 2050, kind="ResultTask")]
    assert places(samples.done(), tasks) == [(3, 0), (4, 0)]


def test_a_retried_task_is_of_the_attempt_that_ran_then() -> None:
    """The attempts of a stage are stages of their own."""
    samples = taken()
    samples.add(1500, TASK)
    samples.add(2500, TASK)
    first = run(1, 3, 1000, 2000)
    assert places(samples.done(), [first, first._replace(id=2, stage=(3, 1), launched=2100, finished=3000)]) == [
        (3, 0),
        (3, 1),
    ]


def test_clocks_that_contradict_the_log_leave_samples_unknown() -> None:
    """Three threads at work, and two tasks: what is said of these is not trusted, and other samples are."""
    samples = taken()
    for thread in (1, 2, 3):
        samples.add(1100, TASK, thread=thread)
    samples.add(1450, TASK, thread=1)
    samples.add(1450, TASK, thread=2)
    samples.add(1800, TASK, thread=2)
    tasks = [run(1, 3, 1000, 1500), run(2, 4, 1000, 2000)]
    assert places(samples.done(), tasks) == [*["unknown"] * 5, (4, 0)]


def test_a_sample_that_names_its_task_belongs_to_the_stage_of_that() -> None:
    """Also while others run; not if the task ended long ago, or is of another application."""
    samples = Taken()
    samples.process("python_worker")
    for at, task in ((1500, 2), (9000, 2), (1500, 77)):
        samples.add(at, "score@job.py:3!", task=task)
    assert places(samples.done(), [run(1, 3, 1000, 2000), run(2, 4, 1000, 2000)]) == [(4, 0), "unknown", "unknown"]


def test_a_python_worker_that_waits_for_its_next_task_belongs_to_no_stage() -> None:
    """Its last task may be named still; one that works without a name is of the only stage."""
    samples = Taken()
    samples.process("python_worker")
    samples.add(9000, "read@serializers.py:3", state="waiting", task=1)
    samples.add(1500, "read@serializers.py:3", state="waiting")
    samples.add(1500, "score@job.py:3!")
    samples.add(2500, "score@job.py:3!")
    tasks = [run(1, 3, 1000, 2000), run(2, 4, 2400, 3000), run(3, 5, 2400, 2900)]
    assert places(samples.done(), tasks) == ["executor", "executor", (3, 0), "unknown"]
