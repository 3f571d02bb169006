import pytest

from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import GIB, found, peaks, settings, stage, task


@pytest.mark.parametrize(
    ("heap", "memory", "rules"),
    [
        (GIB, "8g", {"memory_over"}),
        (6 * GIB, "8g", set()),
        (7.9 * GIB, "8g", {"memory_under"}),
        (GIB, "2g", set()),
        (0, "8g", set()),
        (GIB, "much", set()),
    ],
    ids=["little", "enough", "all", "little of little", "unknown", "no size"],
)
def test_memory_is_judged_by_what_executors_told(heap: float, memory: str, rules: set[str]) -> None:
    """Below 70 % and above 95 % of a heap that is worth it."""
    lines = [log.started(), settings(executor_memory=memory), log.executor()]
    assert set(found([*lines, *([peaks("0", int(heap))] * 10)])) == rules


def test_memory_that_tasks_lacked_is_not_too_much() -> None:
    """They spilled, as with a low `spark.memory.fraction`; less heap would make them spill more."""
    for spilled, rules in ((0, {"memory_over"}), (1, set())):
        begin, *rest = stage([task(number, 1, **{"Disk Bytes Spilled": spilled}) for number in range(4)], seconds=1)
        assert set(found([begin, settings(executor_memory="8g"), *rest, *([peaks("0", GIB)] * 10)])) == rules


def test_the_driver_is_the_executor_of_one_machine() -> None:
    """Its memory is another property, which the advice names."""
    declared = settings(master="local[4]", driver_memory="8g", executor_memory="64g")
    lines = [log.started(), declared, log.executor("driver"), *([peaks("driver", GIB)] * 10)]
    advice = found(lines)["memory_over"].advice
    assert advice == "Lower spark.driver.memory (now 8g), or run more tasks at once (threads in spark.master)."
