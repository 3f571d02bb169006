import pytest

from spark_app.eventlog.model.shares import cpu_share, gc_share
from spark_app.eventlog.model.task_numbers import Totals


@pytest.mark.parametrize(
    ("totals", "task_cpus", "share"),
    [
        (Totals(run_ms=100, gc_ms=50), 1, 0.5),
        (Totals(run_ms=22, deserialize_ms=78, gc_ms=30), 1, 0.3),
        (Totals(run_ms=400, gc_ms=100), 2, 0.5),
        (Totals(run_ms=10, gc_ms=31), 1, 1.0),
        (Totals(gc_ms=3), 1, None),
    ],
)
def test_garbage_collection_is_a_share_of_all_time_that_it_is_measured_in(
    totals: Totals, task_cpus: int, share: float | None
) -> None:
    """A task that collects while it is deserialised; a task of two cores; times that were rounded down."""
    assert gc_share([totals], task_cpus) == share


def test_cpu_time_is_at_most_the_run_time() -> None:
    """Milliseconds are rounded down, nanoseconds are not."""
    assert cpu_share([Totals(run_ms=1, cpu_ns=1_900_000)]) == 1.0
    assert cpu_share([Totals(run_ms=4, cpu_ns=1_000_000)]) == 0.25
    assert cpu_share([]) is None
