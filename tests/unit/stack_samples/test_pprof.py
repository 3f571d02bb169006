import gzip
from typing import Any

from spark_app.stack_samples import pprof
from spark_app.stack_samples.stack_profile import profile
from tests.unit.stack_samples.made import TASK, Taken, run


def read(content: bytes) -> Any:
    """The profile in a file."""
    return pprof.message().FromString(gzip.decompress(content))


def test_a_profile_has_the_stacks_with_their_samples_and_time() -> None:
    """The innermost function first; functions have their file and line, and only those of the part are there."""
    taken = Taken()
    taken.process("python_worker")
    taken.process("driver", None)
    taken.add(1100, "main@worker.py:9", "score@job.py:3!", task=1, times=2)
    taken.add(1100, "plan.Rule.apply", process=1)
    found = profile(taken.done(), [run(1, 3, 1000, 2000)])
    shown = read(pprof.packed(found, found.parts[3, 0]))
    texts, functions = shown.string_table, {each.id: each for each in shown.function}
    lines = {each.id: each.line[0] for each in shown.location}
    [sample] = shown.sample
    assert [(texts[each.type], texts[each.unit]) for each in shown.sample_type] == [
        ("samples", "count"),
        ("time", "nanoseconds"),
    ]
    assert [*sample.value] == [2, 20_000_000]
    stack = [(functions[lines[each].function_id], lines[each].line) for each in sample.location_id]
    assert [(texts[function.name], texts[function.filename], line) for function, line in stack] == [
        ("score", "job.py", 3),
        ("main", "worker.py", 0),
        ("Python", "", 0),
    ]
    assert len(functions) == 3


def test_the_period_is_that_of_all_processes_or_none() -> None:
    """Samples of several intervals have none in common."""
    taken = Taken()
    taken.process(interval_ms=20.0)
    taken.add(1100, TASK)
    found = profile(taken.done(), [run(1, 3, 1000, 2000)])
    shown = read(pprof.packed(found, found.all))
    assert (shown.period, shown.duration_nanos) == (20_000_000, 9_000_000_000)
    taken.process(interval_ms=10.0)
    found = profile(taken.done(), [run(1, 3, 1000, 2000)])
    assert read(pprof.packed(found, found.all)).period == 0
