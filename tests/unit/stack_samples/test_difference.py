from spark_app.stack_samples.difference import changes
from spark_app.stack_samples.stack_profile import StackProfile, profile
from tests.unit.stack_samples.made import TASK, Taken, run


def profiled(*, slow: int, line: int = 7, sort: int = 50, removed: int = 0) -> StackProfile:
    """Samples of a stage: a function of the user's that calls a library, a sort, and the driver."""
    taken = Taken()
    taken.process()
    taken.process("python_worker")
    taken.process("driver", None)
    taken.add(1100, TASK, "a.Sort.next", times=sort)
    taken.add(1100, "main@worker.py:9", f"slow@job.py:{line}!", "dumps@json.py:2", process=1, task=1, times=slow)
    taken.add(1100, "plan.Rule.apply", process=2, times=9)
    taken.add(1100, "plan.Old.apply", process=2, times=removed)
    return profile(taken.done(), [run(1, 3, 1000, 2000)])


def test_a_function_grew_where_the_intervals_of_both_counts_are_apart() -> None:
    """A function of the user's with the library that it calls, at whatever line; 50 and 60 samples are the same."""
    found = changes(profiled(slow=100, line=9, sort=60), profiled(slow=40))
    assert [(each.function, each.is_own, each.difference_ms, each.samples) for each in found] == [
        ("dumps", False, 600, 100),
        ("slow", True, 600, 100),
    ]
    assert (round(found[1].ratio, 3), round(found[1].ratio_before, 3)) == (0.592, 0.404)


def test_a_function_that_is_new_or_gone_is_told_from_one_that_was_missed() -> None:
    """Of no samples there may be 3.7: six of them are no difference yet, twelve are."""
    assert changes(profiled(slow=40), profiled(slow=40, removed=6)) == []
    (gone,) = changes(profiled(slow=40), profiled(slow=40, removed=12))
    assert (gone.function, gone.difference_ms, gone.samples) == ("plan.Old.apply", -120, 0)
    (new,) = changes(profiled(slow=40, removed=12), profiled(slow=40))
    assert new.difference_ms == 120


def test_a_difference_of_less_than_a_hundredth_is_not_named() -> None:
    """However sure: of thousands of functions, some differ by chance."""
    few, many = profiled(slow=40, sort=3000), profiled(slow=40, sort=3000, removed=25)
    assert changes(few, many) == []
    assert changes(profiled(slow=40, sort=2000), profiled(slow=40, sort=2000, removed=25)) != []
