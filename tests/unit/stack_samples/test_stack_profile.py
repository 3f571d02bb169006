from pathlib import Path

from msgspec.structs import replace

from spark_app.stack_samples import samples as file
from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.counts import Tally
from spark_app.stack_samples.stack_profile import NO_NODE, Function, StackProfile, of_log, profile
from tests.unit.eventlog import log
from tests.unit.eventlog.logs import write
from tests.unit.stack_samples.made import PYTHON, TASK, Taken, run


def shop() -> Taken:
    """A driver, an executor and a Python worker, with samples of two stages."""
    taken = Taken()
    driver, executor, worker = taken.process("driver", None), taken.process(), taken.process("python_worker")
    taken.add(1100, "plan.Rule.apply", process=driver, times=3)
    taken.add(1100, "io.Queue.take", process=driver, state="waiting", times=50)
    taken.add(1100, TASK, "a.Sort.next", process=executor, times=6)
    taken.add(1200, TASK, PYTHON, process=executor, state="waiting", times=8)
    taken.add(1100, "main@worker.py:9", "score@job.py:3!", "slow@job.py:7!", process=worker, task=1, times=7)
    taken.add(1200, "main@worker.py:9", "score@job.py:4!", "dumps@json.py:2", process=worker, task=1, times=2)
    taken.add(3100, TASK, "a.Sort.next", process=executor, times=4)
    taken.add(9000, TASK, "a.Sort.next", process=executor)
    return taken


def profiled() -> StackProfile:
    """The same by stage."""
    return profile(shop().done(), [run(1, 3, 1000, 2000), run(2, 4, 3000, 4000)])


def stacks(found: StackProfile, place: Place) -> dict[str, int]:
    """The samples of a place by their stacks."""

    def path(node: int) -> list[str]:
        return [] if node == NO_NODE else [*path(found.nodes[node].parent), found.labels[found.nodes[node].label].text]

    return {
        " > ".join(name.rpartition(".scheduler.")[2] for name in path(node)): tally.samples
        for node, tally in found.parts[place].own.items()
    }


def test_stacks_are_merged_by_stage() -> None:
    """The user's functions by their lines, others by their names; a thread that waits for Python is not among them."""
    found = profiled()
    assert stacks(found, (3, 0)) == {
        f"JVM > {TASK} > a.Sort.next": 6,
        "Python > main > score (job.py:3) > slow (job.py:7)": 7,
        "Python > main > score (job.py:4) > dumps": 2,
    }
    assert stacks(found, (4, 0)) == {f"JVM > {TASK} > a.Sort.next": 4}
    assert stacks(found, "driver") == {"JVM > plan.Rule.apply": 3}


def test_working_is_told_from_waiting() -> None:
    """Threads of the driver that wait are left out: they always do."""
    found = profiled()
    assert found.parts[3, 0].activities == {"jvm": (6, 60), "waiting for python": (8, 80), "python": (9, 90)}
    assert found.parts["driver"].activities == {"jvm": (3, 30)}


def test_the_users_functions_have_their_hottest_line() -> None:
    """Each sample counts once for a function; the one that the worker calls is a UDF."""
    functions = profiled().parts[3, 0].functions
    score, slow = functions[Function("python", "score", "job.py")], functions[Function("python", "slow", "job.py")]
    assert (score.total.samples, score.innermost.samples, score.line, score.is_udf) == (9, 2, 3, True)
    assert (slow.total.samples, slow.innermost.samples, slow.line, slow.is_udf) == (7, 7, 7, False)


def test_a_function_that_calls_itself_counts_once() -> None:
    """And so does its line."""
    taken = Taken()
    taken.process("python_worker")
    taken.add(1100, *["walk@job.py:3!"] * 5, task=1, times=4)
    [time] = profile(taken.done(), [run(1, 3, 1000, 2000)]).parts[3, 0].functions.values()
    assert (time.total, time.innermost, time.lines) == (Tally(4, 40), Tally(4, 40), {3: Tally(4, 40)})


def test_a_sample_counts_as_the_samples_that_it_stands_for() -> None:
    """One of a thread that waited for half a second, or could not be looked at; and at least as one."""
    taken = Taken()
    taken.process()
    taken.add(1100, TASK)
    samples = taken.done()
    for weight, tally in ((50.0, Tally(50, 500)), (0.2, Tally(1, 2))):
        samples.samples = [replace(samples.samples[0], weight=weight)]
        assert profile(samples, [run(1, 3, 1000, 2000)]).all.total == tally


def test_times_of_the_jvm_are_scaled_to_those_of_spark() -> None:
    """Of a stage, not of its waits and of its Python; how much was seen is known."""
    taken = Taken()
    taken.process()
    taken.process("python_worker")
    taken.add(1100, TASK, "a.Sort.next", times=40)
    taken.add(1100, TASK, "a.Lock.lock", state="locked", times=5)
    taken.add(1100, "score@job.py:3!", process=1, task=1, times=7)
    found = profile(taken.done(), [run(1, 3, 1000, 2000)._replace(cpu_ms=800.0)])
    assert found.parts[3, 0].activities == {"jvm": (40, 800.0), "lock": (5, 50), "python": (7, 70)}
    assert found.scaled_from == 0.5


def test_parts_add_up() -> None:
    """A query, or the application, is the sum of its stages."""
    found = profiled()
    both = found.of([(3, 0), (4, 0), (99, 0)])
    assert both.total == found.parts[3, 0].total + found.parts[4, 0].total
    assert both.functions.keys() == found.parts[3, 0].functions.keys()
    assert found.all.total.samples == 31


def test_samples_beside_a_log_are_found(tmp_path: Path) -> None:
    """And without a file, or with one that is damaged, there are none."""
    path = write(tmp_path / "app-1", [log.started(), log.task(1, 3), log.ended()])
    assert of_log(path) is None
    taken = Taken()
    taken.process(executor="0")
    taken.add(2250, TASK)
    file.write(taken.done(), file.file_of(path))
    found = of_log(path)
    assert found is not None
    assert [*found.parts] == [(3, 0)]
    file.file_of(path).write_bytes(b"damaged")
    assert of_log(path) is None


def test_work_of_spark_is_told_by_its_classes() -> None:
    """By stage; in the driver with the line of the program that waits for the JVM, where one does."""
    taken = Taken()
    executor, driver = taken.process(), taken.process("driver", "driver")
    python = taken.process("python_driver", None)
    taken.add(1100, TASK, "a.Read.next", "net.jpountz.lz4.LZ4JNI.decompress", "a.Leaf.c", process=executor, times=9)
    taken.add(1100, TASK, "a.Read.next", process=executor, times=3)
    taken.add(3000, "main@job.py:4!", "call@py4j/clientserver.py:9", process=python, state="waiting")
    samples = taken.done()
    samples.samples[-1] = replace(samples.samples[-1], weight=20.0)
    plan = "org.apache.spark.sql.catalyst.rules.RuleExecutor.execute"
    for at in (2000, 3100):
        taken.add(at, plan, "a.Leaf.c", process=driver, times=7)
    found = profile(taken.done(), [run(1, 3, 1000, 2000)])
    assert {work: time.total.samples for work, time in found.parts[3, 0].works.items()} == {"compression": 9}
    planning = found.of(["driver"]).works["planning"]
    assert (planning.total.samples, planning.function) == (14, plan)
    assert (planning.line, planning.lines["main (job.py:4)"].samples) == ("main (job.py:4)", 7)


def test_the_driver_of_a_time_is_its_samples_then() -> None:
    """Stages are as before. A sample that stands for a longer time counts if all of it is within."""
    taken = shop()
    driver = taken.process("python_driver", None, interval_ms=10.0)
    taken.add(1500, "<module>@job.py:9!", process=driver, times=4)
    taken.samples.append(replace(taken.samples[-1], at_ms=1550, weight=12.0))
    found = profile(taken.done(), [run(1, 3, 1000, 2000), run(2, 4, 3000, 4000)])
    assert stacks(found.within((1000, 1200)), "driver") == {"JVM > plan.Rule.apply": 3}
    assert stacks(found.within((1101, 1502)), "driver") == {
        "JVM > plan.Rule.apply": 2,
        "Python > <module> (job.py:9)": 3,
    }
    assert stacks(found.within((1440, 1550)), "driver") == {"Python > <module> (job.py:9)": 16}
    assert stacks(found.within((1441, 1550)), "driver") == {"Python > <module> (job.py:9)": 4}
    assert "driver" not in found.within((2000, 9000)).parts
    assert "driver" not in found.within(None).parts
    assert found.within(None).parts[3, 0] == found.parts[3, 0]
    assert found.parts["driver"].total.samples == 19


def test_a_part_of_a_sample_from_before_a_time_is_not_of_it() -> None:
    """A thread that ran for a part of an interval: the last sample of a run is not one of the run that follows."""
    taken = shop()
    taken.add(1500, "<module>@job.py:9!", process=taken.process("python_driver", None, interval_ms=10.0))
    taken.samples[-1] = replace(taken.samples[-1], weight=0.3)
    found = profile(taken.done(), [run(1, 3, 1000, 2000)])
    assert "driver" not in found.within((1502, 2000)).parts
    assert stacks(found.within((1450, 1501)), "driver") == {"Python > <module> (job.py:9)": 1}


def test_lines_that_wait_for_the_driver_are_those_of_the_time() -> None:
    """As the works of Spark are."""
    taken = Taken()
    driver, program = taken.process("driver", "driver"), taken.process("python_driver", None)
    planning = "org.apache.spark.sql.catalyst.rules.RuleExecutor.execute"
    for begun, line in ((1000, 3), (2000, 8)):
        stack = ("<module>@job.py:1!", f"main@job.py:{line}!", "send@py4j/java_gateway.py:1")
        taken.add(begun, *stack, process=program, state="waiting", times=40)
        taken.add(begun, planning, process=driver, times=20)
    found = profile(taken.done(), [])
    for begun, line in ((1000, 3), (2000, 8)):
        work = found.within((begun, begun + 100)).parts["driver"].works["planning"]
        assert (work.total.samples, work.line) == (20, f"main (job.py:{line})")
