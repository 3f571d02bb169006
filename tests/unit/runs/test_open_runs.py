"""Which runs of an application were alone all the time."""

from spark_app.runs.open_runs import OpenRuns


def test_runs_after_one_another_are_alone() -> None:
    """Each of them."""
    runs = OpenRuns()
    for _ in range(2):
        with runs.opened() as run:
            assert run.is_alone
        assert run.is_alone


def test_runs_at_the_same_time_are_not_alone_any_more() -> None:
    """Also the first one, which was for a while, and is again after the other's end; and a run that fails has ended."""
    runs = OpenRuns()
    with runs.opened() as first:
        with runs.opened() as second:
            assert (first.is_alone, second.is_alone) == (False, False)
        with runs.opened() as third:
            pass
    assert (first.is_alone, second.is_alone, third.is_alone) == (False, False, False)
    try:
        with runs.opened():
            raise ValueError
    except ValueError:
        pass
    with runs.opened() as last:
        assert last.is_alone
