from typing import Any, Final

import pytest

from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.host_load import HostLoad, LoadSample
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import BEGAN, DEFAULTS, settings, stage, task, with_plan
from tests.unit.eventlog.diagnoses.plans import node

RULE: Final = "external_wait"
WAITING: Final[dict[str, Any]] = {
    "Executor CPU Time": 1_000_000_000,
    "Executor Deserialize Time": 10,
    "Executor Deserialize CPU Time": 10_000_000,
}
"""A second of work in a minute, on a host of their own."""
PYTHON: Final = [{"RDD ID": 1, "Name": "PythonRDD"}]


def host(runnable: int, *, python_ms: int | None = 0) -> HostLoad:
    """A host with two processors, and so many runnable threads and so much work in Python while the stage runs."""
    samples = [
        LoadSample(BEGAN + second * 1000, runnable, {}, None if python_ms is None else python_ms * second // 60)
        for second in range(61)
    ]
    return HostLoad(2, samples)


def found(metrics: dict[str, Any], load: HostLoad | None = None, **info: Any) -> Finding | None:
    """What is found about two tasks of a minute on two cores."""
    begin, *rest = stage([task(number, 60, **metrics) for number in range(2)], seconds=60, cores=2, **info)
    app = log.application([begin, settings(master="local[2]"), *rest])
    app.host_load = load
    return {finding.rule: finding for finding in diagnose(app, DEFAULTS)}.get(RULE)


def test_tasks_that_only_wait_cost_their_wait() -> None:
    """An info, since many jobs have to ask a service; on a host that nobody measured with less certainty."""
    for load, waited in ((host(1), 118_000), (None, 112_000)):
        finding = found(WAITING, load)
        assert finding is not None
        assert (finding.severity, finding.numbers["waited_task_ms"]) == ("info", waited)
        assert finding.cost_ms == waited / 2
        assert "of 2 min 00 s of run time for something outside Spark" in finding.text


@pytest.mark.parametrize(
    "metrics",
    [
        {"Executor CPU Time": 55_000_000_000},
        {"JVM GC Time": 55_000},
        {"Shuffle Read Metrics": {"Fetch Wait Time": 55_000}},
        {"Disk Bytes Spilled": 4 << 30},
        {"Input Metrics": {"Bytes Read": 8 << 30}},
        {"Output Metrics": {"Bytes Written": 8 << 30}},
        {"Executor CPU Time": 6_000_000_000, "Executor Deserialize Time": 100},
        {"Executor Deserialize CPU Time": 0},
    ],
    ids=["work", "garbage", "a shuffle", "spill", "input", "output", "starved", "no evidence"],
)
def test_what_spark_measures_or_a_busy_host_explains_is_no_wait(metrics: dict[str, Any]) -> None:
    """Bytes take their time on a disk."""
    assert found(WAITING | metrics) is None


def test_python_functions_wait_if_their_workers_used_no_processor() -> None:
    """Nor waited for one: then they computed, however busy the host was."""
    for load in (host(1, python_ms=3000), host(9, python_ms=3000)):
        finding = found(WAITING, load, **{"RDD Info": PYTHON})
        assert finding is not None
        assert "for something outside Spark" in finding.text
    assert found(WAITING, host(3, python_ms=110_000), **{"RDD Info": PYTHON}) is None


@pytest.mark.parametrize("load", [None, host(1, python_ms=None)], ids=["nobody", "a kernel without schedstat"])
def test_whether_python_functions_wait_is_not_guessed(load: HostLoad | None) -> None:
    """The log has no processor time of Python workers."""
    assert found(WAITING, load, **{"RDD Info": PYTHON}) is None


def test_a_stage_that_says_little_of_its_host_is_as_slow_as_the_others() -> None:
    """Its few tasks were deserialised in an instant, those of another stage at a fifth of the speed."""
    starved = WAITING | {"Executor CPU Time": 5_000_000_000, "Executor Deserialize CPU Time": 4_000_000}
    starved |= {"Executor Deserialize Time": 4}
    before = {"Executor CPU Time": 100_000_000, "Executor Deserialize Time": 5000} | {
        "Executor Deserialize CPU Time": 1_000_000_000
    }
    alone = stage([task(number, 60, **starved) for number in range(2)], seconds=60, cores=2)
    app = log.application(alone)
    assert RULE in {finding.rule for finding in diagnose(app, DEFAULTS)}
    other = log.application(stage([task(2, 2, **before)], seconds=2))
    app.deserialize_ms += other.deserialize_ms
    app.deserialize_cpu_ns += other.deserialize_cpu_ns
    assert RULE not in {finding.rule for finding in diagnose(app, DEFAULTS)}


def test_the_function_that_waits_at_each_row_is_named() -> None:
    """It is to ask for many rows at once, and that it is called for each row is no other cause."""
    text = "ArrowEvalPython [geocode(id#0L)#1], [pythonUDF0#2], 101"
    plan = node("ArrowEvalPython", text=text, number_of_output_rows=20_000, time_to_execute_Python_code=100_000)
    lines = with_plan(stage([task(number, 60, **WAITING) for number in range(2)], seconds=60, cores=2), plan)
    app = log.application([lines[0], settings(master="local[2]"), *lines[1:], log.query_ended(4, time=BEGAN + 60_000)])
    app.host_load = host(1)
    finding, other = (each for each in diagnose(app, DEFAULTS) if each.rule in (RULE, "row_python_udf"))
    assert finding.text.endswith(": geocode is called for each of 20,000 rows, and waits about 6 ms each")
    assert finding.advice.startswith("Let geocode ask for many rows at once: df.mapInPandas")
    assert (other.rule, other.because) == ("row_python_udf", RULE)
