from typing import Any, Final

import pytest

from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.host_load import HostLoad, LoadSample
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import BEGAN, DEFAULTS, settings, stage, task
from tests.unit.eventlog.log import Line

HUNGRY: dict[str, Any] = {
    "Executor CPU Time": 6_000_000_000,
    "Executor Deserialize Time": 1000,
    "Executor Deserialize CPU Time": 100_000_000,
}
"""A tenth of a minute, and of the time to deserialise it."""


COMPUTING: dict[str, Any] = HUNGRY | {"Executor CPU Time": 30_000_000_000}
"""Half of the time."""
IN_PYTHON: dict[str, Any] = HUNGRY | {"Executor CPU Time": 100_000_000}
PYTHON: Final = [{"RDD ID": 1, "Name": "PythonRDD"}]


def host(runnable: float, processors: int = 2, *, python_ms: int | None = None) -> HostLoad:
    """A host with so many runnable threads, and so much work in Python, while the stages run."""
    samples = [
        LoadSample(
            BEGAN + second * 1000,
            int(runnable * (second + 1)) - int(runnable * second),
            {"cpu": second * 900_000},
            None if python_ms is None else python_ms * second // 60,
        )
        for second in range(61)
    ]
    return HostLoad(processors, samples)


def lines_of(metrics: dict[str, Any], *, properties: dict[str, str] | None = None, **info: Any) -> list[Line]:
    """A stage with two tasks of a minute on two cores."""
    begin, *rest = stage([task(number, 60, **metrics) for number in range(2)], seconds=60, cores=2, **info)
    return [begin, settings(**({"driver_host": "h"} | (properties or {}))), *rest]


def found(lines: list[Line], load: HostLoad | None = None) -> dict[str, Finding]:
    """What is found where a host was measured, by rule."""
    app = log.application(lines)
    app.host_load = load
    return {finding.rule: finding for finding in diagnose(app, DEFAULTS)}


def test_tasks_without_a_processor_cost_the_time_that_they_waited_for_it() -> None:
    """They were deserialised ten times slower than they could be: six seconds of work of each took a minute."""
    finding = found(lines_of(HUNGRY))["cpu_starvation"]
    assert finding.cost_ms == 54_000
    assert finding.text.endswith("its tasks worked for 12.0 s and waited about 1 min 48 s for a processor")
    assert (finding.severity, finding.numbers["cpu_ratio"]) == ("warning", 0.1)


@pytest.mark.parametrize(
    "metrics",
    [
        HUNGRY | {"Executor CPU Time": 30_000_000_000},
        HUNGRY | {"Executor CPU Time": 0},
        HUNGRY | {"JVM GC Time": 50_000},
        HUNGRY | {"Shuffle Read Metrics": {"Fetch Wait Time": 50_000}},
        HUNGRY | {"Executor Deserialize CPU Time": 600_000_000},
        HUNGRY | {"Executor CPU Time": 500_000_000},
        HUNGRY | {"Executor Deserialize Time": 49, "Executor Deserialize CPU Time": 1},
    ],
    ids=["half of the time", "not measured", "garbage", "a shuffle", "alone", "little work", "no evidence"],
)
def test_tasks_that_wait_for_something_else_are_not_starved(metrics: dict[str, Any]) -> None:
    """A service or a disk: what the log does not know is not guessed."""
    assert "cpu_starvation" not in found(lines_of(metrics))


def test_a_busy_host_is_known_where_it_was_measured() -> None:
    """Its load is the slowdown, whatever it took to deserialise the tasks; a calm host is acquitted."""
    finding = found(lines_of(HUNGRY), host(9))["cpu_starvation"]
    assert finding.cost_ms == 6000 * 3.5
    assert "; the host had 4.5 runnable threads for each processor, and some thread waited for a" in finding.text
    assert finding.text.endswith("a processor 90 % of the time")
    assert "Look for other programs" in finding.advice
    assert "cpu_starvation" not in found(lines_of(HUNGRY), host(2))


@pytest.mark.parametrize(("runnable", "is_starved"), [(2, False), (2.8, False), (3.2, True), (4, True)])
def test_an_equal_on_the_same_host_starves_a_job(runnable: float, *, is_starved: bool) -> None:
    """Both have half of the processors; a collector or a compiler beside two tasks is no other job."""
    starved = found(lines_of(COMPUTING), host(runnable)).get("cpu_starvation")
    assert (starved is not None) == is_starved
    if starved is not None:
        assert starved.cost_ms == pytest.approx(30_000 * (runnable / 2 - 1), rel=0.02)


def test_python_workers_share_a_host_too() -> None:
    """They were on a processor or waited for one all the time, and two others as well: they had half of it."""
    lines = lines_of(IN_PYTHON, properties={"master": "local[2]"}, **{"RDD Info": PYTHON})
    finding = found(lines, host(4, python_ms=119_000))["cpu_starvation"]
    assert finding.cost_ms == pytest.approx(30_000, rel=0.02)
    assert finding.numbers["cpu_ratio"] == pytest.approx(0.5)
    assert "cpu_starvation" not in found(lines, host(2, python_ms=119_000))
    assert "cpu_starvation" not in found(lines, host(4, python_ms=9000))


def test_python_workers_that_compute_beside_their_tasks_are_nobody_else() -> None:
    """Two tasks and their two workers take turns on two processors: what helps is less Python, and no other host."""
    lines = lines_of(COMPUTING, properties={"master": "local[2]"}, **{"RDD Info": PYTHON})
    assert "cpu_starvation" not in found(lines, host(4, python_ms=119_000))
    assert "cpu_starvation" in found(lines, host(6, python_ms=119_000))
    assert "cpu_starvation" in found(lines, host(4)), "nobody measured the workers"


def test_threads_that_write_to_python_workers_are_nobody_else() -> None:
    """Before Spark 4.0 each task has one, of which no log tells how long it was on a processor."""
    lines = lines_of(IN_PYTHON, properties={"master": "local[2]"}, **{"RDD Info": PYTHON})
    before = [{"Event": "SparkListenerLogStart", "Spark Version": "3.5.9"}, *lines]
    assert "cpu_starvation" in found(lines, host(4, python_ms=119_000))
    assert "cpu_starvation" not in found(before, host(4, python_ms=119_000))
    assert "cpu_starvation" in found(before, host(6, python_ms=119_000))


def test_the_load_of_another_host_says_nothing() -> None:
    """`observe` measures the host of the driver; with a remote master, the executors are elsewhere."""
    calm_tasks = HUNGRY | {"Executor Deserialize CPU Time": 1_000_000_000}
    remote = {"master": "spark://remote:7077", "driver_host": "laptop"}
    assert "cpu_starvation" in found(lines_of(calm_tasks, properties={"master": "spark://remote:7077"}), host(9))
    assert "cpu_starvation" not in found(lines_of(calm_tasks, properties=remote), host(9))
    both = [*(lines := lines_of(calm_tasks))[:2], log.executor("1", host="other"), *lines[2:]]
    assert "cpu_starvation" not in found(both, host(9))
    finding = found(lines_of(HUNGRY, properties=remote), host(4))["cpu_starvation"]
    assert "the host had" not in finding.text


def test_more_threads_than_processors_are_named() -> None:
    """An application may starve itself."""
    lines = lines_of(HUNGRY, properties={"master": "local[16]"})
    next(line for line in lines if line["Event"] == "SparkListenerExecutorAdded")["Executor Info"]["Total Cores"] = 16
    advice = found(lines, host(17))["cpu_starvation"].advice
    assert advice == "spark.master is local[16] on a host with 2 processors: run fewer threads."
