import pytest

from spark_app.eventlog.model.host_load import HostLoad, LoadSample

LOAD = HostLoad(
    2, [LoadSample(1000, 2, {"cpu": 500_000}), LoadSample(2000, 4, {"cpu": 1_000_000}), LoadSample(3000, 9, {})]
)


def test_the_load_of_a_time_is_the_mean_of_its_samples() -> None:
    """Without a sample in it nothing is known."""
    assert LOAD.runnable(1000, 2000) == 3
    assert LOAD.runnable(4000, 5000) is None


def test_pressure_is_the_share_of_the_time_in_which_a_thread_waited() -> None:
    """Half a second of one; one sample, or none with a count, tells nothing."""
    assert LOAD.pressure("cpu", 0, 9000) == pytest.approx(0.5)
    assert LOAD.pressure("cpu", 2000, 9000) is None
    assert LOAD.pressure("io", 0, 9000) is None


def test_the_time_of_python_workers_is_that_between_the_samples_around_a_time() -> None:
    """At most what they used; unknown where a sample lacks it, or there is none."""
    load = HostLoad(2, [LoadSample(time, 1, {}, time // 10) for time in (1000, 2000, 3000, 4000)])
    assert load.python_ms(2500, 2600) == 100
    assert load.python_ms(0, 9000) == 300
    assert LOAD.python_ms(1000, 3000) is None
    assert HostLoad(2, ()).python_ms(1000, 3000) is None
