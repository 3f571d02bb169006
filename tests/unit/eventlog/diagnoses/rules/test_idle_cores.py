import pytest

from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import found, settings
from tests.unit.eventlog.diagnoses.timeline_cases import job

HOUR = 3_600_000


def test_idle_cores_are_told_from_some_idle_time_on() -> None:
    """Four cores for an hour and a half, one of which works."""
    lines = [log.started(1000), log.executor(time=1000), *job(0, 1000, 1000 + HOUR * 3 // 2)]
    finding = found(lines)["idle_cores"]
    assert finding.numbers["idle_ratio"] == 0.75
    assert finding.cost_ms is None
    assert "Of 6 h 00 min of core time, 4 h 30 min were idle (75 %)" in finding.text


@pytest.mark.parametrize(
    ("cores", "hours", "properties"),
    [
        (4, 0.3, {}),
        (2, 2.5, {}),
        (4, 2.5, {"task_cpus": "2"}),
        (4, 1.5, {"master": "local[4]"}),
        (4, 1.5, {"master": "local"}),
    ],
    ids=["a short time", "half", "tasks of two cores", "one machine", "one thread"],
)
def test_some_idle_cores_are_normal(cores: int, hours: float, properties: dict[str, str]) -> None:
    """Too little of them, cores that are busy, or cores that cost nothing."""
    lines = [log.started(1000), settings(**properties), log.executor(cores=cores, time=1000)]
    lines += job(0, 1000, 1000 + int(hours * HOUR))
    assert "idle_cores" not in found(lines)
