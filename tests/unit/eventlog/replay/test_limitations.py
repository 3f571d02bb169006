from typing import Any, Final

import pytest

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.host_load import HostLoad, LoadSample
from spark_app.eventlog.replay import limitations
from spark_app.eventlog.replay.what_if import forecasts, parsed
from spark_app.eventlog.replay.work import Work, work
from tests.unit.eventlog import log

BEGAN: Final = 1000
LOCAL: Final = {"spark.master": "local[2]"}


def waiting(runnable: int) -> Work:
    """Four tasks that wait for two seconds each, after two of the driver, on a host with two processors."""
    tasks = []
    for number in range(4):
        launched = BEGAN + 2000 + number // 2 * 2000
        times: dict[str, Any] = {"Launch Time": launched, "Finish Time": launched + 2000}
        task = log.task(number, 0, **times)
        tasks.append(task | {"Task Metrics": {"Executor Run Time": 2000, "Executor CPU Time": 5_000_000}})
    lines = [log.stage(0, tasks=4), *log.starts(tasks), *tasks, log.stage(0, end=BEGAN + 6000)]
    begin = [log.environment(LOCAL), log.started(BEGAN), log.executor(cores=2), log.job(0, [0], time=BEGAN + 2000)]
    app: Application = log.application([*begin, *lines, log.ended(BEGAN + 6000)])
    app.host_load = HostLoad(2, tuple(LoadSample(BEGAN + ms, runnable, {}) for ms in range(0, 6000, 1000)))
    stages = app.stages.values()
    done = work(app, stages, app.occupancy(stages, (BEGAN, BEGAN + 6000)))
    assert done is not None
    return done


@pytest.mark.parametrize(("runnable", "slowdown"), [(1, 1), (2, 1), (20, 10)])
def test_threads_beyond_the_processors_slow_computation_down(runnable: int, slowdown: int) -> None:
    """Fewer of them than processors do not."""
    assert limitations.slowdown(waiting(runnable)) == slowdown


def test_tasks_that_need_no_processor_are_forecast_on_a_busy_host_too() -> None:
    """The driver, which needs one, may be much faster next time: the interval is wider."""
    widths = []
    for runnable in (1, 20):
        (found,) = forecasts(waiting(runnable), [parsed("cores=4")])
        assert (found.ms, found.reasons) == (4000, [])
        assert found.low_ms is not None
        assert found.high_ms is not None
        widths.append(found.high_ms - found.low_ms)
    assert widths[1] > 3 * widths[0]
