from spark_app.eventlog.diagnoses import diagnose
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import DEFAULTS, GIB, found, spilled, stage, task


def test_garbage_collection_costs_its_share_of_the_stage() -> None:
    """A tenth of the time of four tasks at once is a tenth of the stage."""
    tasks = [task(number, 60, **{"JVM GC Time": 6000}) for number in range(4)]
    finding = found(stage(tasks, seconds=60))["gc_pressure"]
    assert finding.cost_ms == 6000
    assert "10 % of task time" in finding.text


def test_garbage_collection_is_at_most_the_whole_time() -> None:
    """Spark counts collections while tasks are deserialised, too."""
    times = {"Executor Run Time": 1000, "Executor Deserialize Time": 59_000, "JVM GC Time": 60_001}
    finding = found(stage([task(number, 60, **times) for number in range(4)], seconds=60))["gc_pressure"]
    assert (finding.numbers["gc_ratio"], finding.cost_ms) == (1.0, 60_000)


def test_a_stage_without_metrics_has_no_garbage_collection() -> None:
    """No run time is known: there is no share of it."""
    assert "gc_pressure" not in found(stage([task(0, 60, loss="gone")], seconds=60))


def test_warnings_come_first_then_what_costs_most() -> None:
    """An info is last, whatever it costs."""
    tasks = [task(number, 40, begin=number // 2 * 40, **{"JVM GC Time": 5000}) for number in range(11)]
    failed = task(11, 4, begin=200, error="x", **spilled(GIB), **{"JVM GC Time": 6000})
    lines = stage([*tasks, failed], seconds=280, cores=2)
    findings = diagnose.diagnose(log.application(lines), DEFAULTS)
    assert [finding.rule for finding in findings] == ["gc_pressure", "spill", "failed_tasks"]
    assert [finding.severity for finding in findings] == ["warning", "warning", "info"]
