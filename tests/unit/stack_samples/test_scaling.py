import pytest

from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.counts import Tally
from spark_app.stack_samples.samples import Process
from spark_app.stack_samples.scaling import factors, is_needed
from tests.unit.stack_samples.made import run


def test_samples_of_a_stage_have_the_time_that_spark_measured() -> None:
    """A stage of few samples, and tasks of unknown stages, have the factor of all."""
    tasks = [run(1, 3, 0, 9)._replace(cpu_ms=700.0), run(2, 4, 0, 9)._replace(cpu_ms=300.0)]
    tasks.append(run(3, 5, 0, 9)._replace(cpu_ms=50.0))
    seen: dict[Place, Tally] = {
        (3, 0): Tally(20, 200.0),
        (4, 0): Tally(30, 300.0),
        (5, 0): Tally(2, 20.0),
        "unknown": Tally(1, 5.0),
    }
    every = pytest.approx(1050 / 525)
    assert factors(seen, tasks) == {(3, 0): 3.5, (4, 0): 1.0, (5, 0): every, "unknown": every}


def test_too_few_samples_are_not_scaled() -> None:
    """Nor where the log has no time on a processor."""
    assert factors({(3, 0): Tally(19, 190.0)}, [run(1, 3, 0, 9)._replace(cpu_ms=700.0)]) == {}
    assert factors({(3, 0): Tally(50, 500.0)}, [run(1, 3, 0, 9)]) == {}


def test_samples_of_the_time_on_a_processor_are_left_as_they_are() -> None:
    """As Java has them from version 25 on."""
    jvm = Process("executor", "1", "h", 7, 10.0, 0, 9)
    python = Process("python_driver", None, "h", 8, 10.0, 0, 9)
    assert is_needed([jvm, python])
    assert not is_needed([Process("executor", "1", "h", 7, 10.0, 0, 9, is_of_cpu=True), python])
    assert not is_needed([python])
