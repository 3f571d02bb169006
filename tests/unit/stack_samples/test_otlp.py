import msgspec
import pytest

from spark_app.eventlog import span_ids
from spark_app.stack_samples import otlp, stack_profile
from spark_app.stack_samples.task_runs import TaskRun
from spark_app.telemetry.profiles import Observations, Profile, SpanLink
from tests.unit.eventlog import log
from tests.unit.stack_samples.made import PYTHON, TASK, Taken, run

UNSAMPLED = f"00-{'a' * 32}-{'b' * 16}-00"
APP = log.application(
    [
        log.started(),
        log.job(1, [3]),
        log.stage(3),
        log.task(1, 3),
        log.job(2, [4], traceparent=UNSAMPLED),
        log.stage(4),
        log.task(2, 4),
    ]
)
TASKS = [run(1, 3, 1000, 2000), run(2, 4, 3000, 4000)]


def taken() -> Taken:
    """A worker, an executor and the driver."""
    found = Taken()
    found.process("python_worker")
    found.process("executor")
    found.process("driver", None)
    return found


def found(samples: Taken) -> dict[str, Profile]:
    """The profiles by what they observe."""
    return {each.sample_type[0]: each for each in otlp.profiles(samples.done(), TASKS, APP)}


def link_of_stage(number: int) -> SpanLink:
    """The span of a stage."""
    ids = span_ids.of_stage(APP, APP.stages[number, 0])
    return SpanLink(ids.trace_id, ids.span_id)


def test_a_sample_of_a_task_has_the_span_of_its_stage() -> None:
    """With the functions, the innermost first, and the attributes that the span has."""
    samples = taken()
    samples.add(1100, "main@worker.py:9", "score@job.py:3!", task=1, times=2)
    profile = found(samples)["cpu"]
    [(origin, observations)] = profile.observations.items()
    assert origin.link == link_of_stage(3)
    assert [(each.type, each.function, each.file, each.line) for each in origin.stack.frames] == [
        ("cpython", "score", "job.py", 3),
        ("cpython", "main", "worker.py", 9),
    ]
    assert dict(origin.attributes) == {
        "host.name": "h",
        "spark.executor.id": "1",
        "spark.stage.id": 3,
        "spark.stage.attempt": 0,
    }
    assert observations.times == [1_100_000_000, 1_101_000_000]
    assert observations.values == [10_000_000, 10_000_000]
    assert (profile.period_type, profile.period) == (("cpu", "nanoseconds"), 10_000_000)


def test_what_is_of_no_stage_has_the_span_of_the_application() -> None:
    """Threads of the driver, and of tasks whose stage is not known."""
    samples = taken()
    samples.add(1100, "plan.Rule.apply", process=2)
    samples.add(9000, TASK, "a.B.c", process=1)
    ids = span_ids.of_application(APP)
    origins = found(samples)["cpu"].observations
    assert {origin.link for origin in origins} == {SpanLink(ids.trace_id, ids.span_id)}
    assert [dict(origin.attributes).get("spark.executor.id") for origin in origins] == [None, "1"]
    assert all("spark.stage.id" not in dict(origin.attributes) for origin in origins)


def test_a_span_that_is_not_exported_is_not_named() -> None:
    """That of a stage whose trace is not sampled; the stage is still told."""
    samples = taken()
    samples.add(3100, TASK, "a.B.c", process=1)
    [origin] = found(samples)["cpu"].observations
    assert origin.link is None
    assert dict(origin.attributes)["spark.stage.id"] == 4


def test_time_on_processors_and_waits_are_two_profiles() -> None:
    """Waits for Python are in none: its worker has samples of the same time; nor do idle threads count."""
    samples = taken()
    samples.add(1100, TASK, "a.B.c", process=1)
    samples.add(1110, TASK, "java/lang/Thread.sleep", process=1, state="waiting")
    samples.add(1115, TASK, "a.Cache.get", process=1, state="locked")
    samples.add(1120, TASK, PYTHON, process=1, state="waiting")
    samples.add(1130, "java/lang/Thread.sleep", process=2, state="waiting")
    profiles = found(samples)
    assert {kind: sum(map(len, map(times_of, each.observations.values()))) for kind, each in profiles.items()} == {
        "cpu": 1,
        "off_cpu": 2,
    }
    assert len({each.key for each in profiles.values()}) == 2


def times_of(observations: Observations) -> list[int]:
    """When they were."""
    return observations.times


def test_values_sum_to_the_time_that_reports_show() -> None:
    """Also of samples with a weight of their own, of processes with other intervals, and of Java before 25."""
    samples = taken()
    samples.process("executor", "2", interval_ms=50.0)
    samples.add(1100, "score@job.py:3!", task=1, times=3)
    samples.add(1100, "a.Loop.run", process=2, times=4)
    samples.add(1200, TASK, "a.B.c", process=3, times=5)
    samples.samples[0] = msgspec.structs.replace(samples.samples[0], weight=0.25)
    assert total_ms(samples, TASKS) == stack_profile.profile(samples.done(), TASKS).all.shown.ms
    samples.add(1300, TASK, "a.B.c", process=1, times=30)
    measured = [each._replace(cpu_ms=900.0) for each in TASKS]
    reported = stack_profile.profile(samples.done(), measured)
    assert reported.scaled_from is not None
    assert total_ms(samples, measured) == pytest.approx(reported.all.shown.ms)


def total_ms(samples: Taken, tasks: list[TaskRun]) -> float:
    """The sum of all values, in milliseconds."""
    profiles = otlp.profiles(samples.done(), tasks, APP)
    return sum(sum(each.values) for profile in profiles for each in profile.observations.values()) / 1e6
