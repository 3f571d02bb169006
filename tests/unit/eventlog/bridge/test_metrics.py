"""What is counted of event logs is bounded, adds up, and is what the tasks reported."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

from spark_app.eventlog import span_ids
from spark_app.eventlog.bridge.histograms import BATCH_DURATION, MEASURES, Histogram
from spark_app.eventlog.bridge.metrics import (
    MAX_GROUPS,
    OTHER,
    Aggregate,
    BasePoints,
    Numbers,
    decoded,
    merged,
)
from spark_app.eventlog.bridge.metrics_aggregator import MAX_LATE, MAX_WAITING, MetricsAggregator
from spark_app.eventlog.diagnoses.rules.lost_executors import lost_executors
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import scheduler_delay_ms
from spark_app.eventlog.parse.events import TaskEnd, TaskInfo, TaskMetrics
from spark_app.vocabulary.names import STREAM_PHASE_DURATION
from tests.unit.eventlog import log, logs
from tests.unit.eventlog.log import Line, ended, events_of, job, job_ended, read, stage, started, task

GROUP: Final = "save at job.py [result]"
METRICS: Final[dict[str, Any]] = {
    "Executor Run Time": 80, "Executor CPU Time": 7_000_000, "JVM GC Time": 0, "Disk Bytes Spilled": 0,
    "Executor Deserialize Time": 5, "Input Metrics": {"Bytes Read": 2048, "Records Read": 2},
    "Shuffle Read Metrics": {"Remote Bytes Read": 70, "Local Bytes Read": 30},
}  # fmt: skip


def metered(number: int, in_stage: int = 0, *, metrics: dict[str, Any] | None = None) -> Line:
    """A task of 100 ms that reported its metrics."""
    return task(number, in_stage) | {"Task Metrics": METRICS | (metrics or {})}


def aggregator(lines: Iterable[Line]) -> MetricsAggregator:
    """What counted some lines."""
    app = Application("app-1")
    found = MetricsAggregator(app)
    for event in events_of(lines):
        app.apply(event)
        found.take(event)
    return found


def numbers(lines: Iterable[Line], *, name: str = "shop") -> Numbers:
    """What some lines of one application add up to."""
    return aggregator(lines).aggregate().applications[name]


def program(*tasks: Line, app_id: str = "app-1", end: bool = True) -> list[Line]:
    """A program with one job of one stage."""
    begin = started() | {"App ID": app_id}
    return [begin, job(0, [0]), stage(0), *tasks, stage(0, end=2900), job_ended(0), *([ended()] if end else [])]


def histogram(found: Numbers, name: str, group: str = GROUP) -> Histogram:
    """The histogram of a metric."""
    return found.groups[group].histograms[f"spark.task.{name}"]


def series(aggregate: Aggregate) -> set[tuple[str, ...]]:
    """The application, the metric and the labels of all that was counted."""
    return {
        (application, *key)
        for application, found in aggregate.applications.items()
        for key in (
            *((metric, name) for name, group in found.groups.items() for metric in (*group.histograms, *group.counts)),
            *found.counts,
            *((metric,) for metric in found.levels),
        )
    }


def test_an_application_that_runs_often_makes_the_same_series() -> None:
    """Other ids, other times, other tasks: nothing of it is in a label."""
    once = aggregator(program(metered(0), metered(1))).aggregate()
    often = merged(aggregator(program(metered(number), app_id=f"app-{number}")).aggregate() for number in range(50))
    assert series(often) == series(once)
    assert not [key for key in series(often) if any("app-" in part for part in key)]
    assert histogram(often.applications["shop"], "duration") != histogram(once.applications["shop"], "duration")
    assert sum(histogram(often.applications["shop"], "duration").counts) == 50


OF_A_TASK: Final[dict[str, Callable[[TaskInfo, TaskMetrics], int]]] = {
    "duration": lambda info, _: info.finished - info.launched,
    "run_time": lambda _, metrics: metrics.run_ms,
    "cpu_time": lambda _, metrics: metrics.cpu_ns or 0,
    "gc_time": lambda _, metrics: metrics.gc_ms,
    "scheduler_delay": scheduler_delay_ms,
    "shuffle.read": lambda _, metrics: metrics.shuffle_read.remote_bytes + metrics.shuffle_read.local_bytes,
    "shuffle.write": lambda _, metrics: metrics.shuffle_write.bytes,
    "spill": lambda _, metrics: metrics.disk_spilled,
    "input": lambda _, metrics: metrics.input.bytes,
    "output": lambda _, metrics: metrics.output.bytes,
}


MANY: Final = [
    metered(number, metrics={
        "Executor Run Time": number, "Executor CPU Time": number * 10**6 + 1, "JVM GC Time": number % 5,
        "Disk Bytes Spilled": number * 4096, "Shuffle Write Metrics": {"Shuffle Bytes Written": number * 1024},
        "Output Metrics": {"Bytes Written": 2 ** (number % 40)},
    })
    for number in range(2 * MAX_WAITING + 7)
]  # fmt: skip
ENDS: Final = [event for event in events_of(MANY) if isinstance(event, TaskEnd)]


def sums(found: Numbers) -> dict[str, int]:
    """The sums over the tasks, of all groups and of the application, by the metric."""
    totals = Counter({key[0]: count for key, count in found.counts.items() if len(key) == 1})
    for group in found.groups.values():
        totals.update(group.counts)
        totals.update({name: each.sum for name, each in group.histograms.items()})
    return dict(totals)


@pytest.mark.parametrize("name", OF_A_TASK)
def test_sums_are_those_over_the_ends_of_tasks(name: str) -> None:
    """Of each kind, in the unit of the log."""
    values = [OF_A_TASK[name](event.info, event.metrics) for event in ENDS if event.metrics]
    assert sums(numbers(program(*MANY)))[f"spark.task.{name}"] == sum(values)


def test_each_duration_is_in_the_bucket_whose_upper_bound_is_not_below_it() -> None:
    """With the least and the most."""
    values = [OF_A_TASK["duration"](event.info, event.metrics) for event in ENDS if event.metrics]
    found = histogram(numbers(program(*MANY)), "duration")
    assert (found.sum, found.least, found.most) == (sum(values), min(values), max(values))
    edges = [-1, *MEASURES["spark.task.duration"].bounds, 2**62]
    assert found.counts == [sum(low < value <= high for value in values) for low, high in itertools.pairwise(edges)]


def in_python(number: int, milliseconds: int) -> list[Line]:
    """A stage that an operator's number of Python's time was reported of."""
    done = stage(number, end=2900)
    python_time = {"ID": 9, "Name": "time to run Python workers", "Value": str(milliseconds)}
    return [stage(number), done | {"Stage Info": done["Stage Info"] | {"Accumulables": [python_time]}}]


def test_time_in_python_is_counted_once() -> None:
    """Spark's number of an operator is of all stages so far: each counts what it has added."""
    found = numbers([started(), job(0, [0, 1]), *in_python(0, 400), *in_python(1, 700), job_ended(0), ended()])
    python = [group.counts.get("spark.stage.python_time", 0) for group in found.groups.values()]
    assert sorted(each for each in python if each) == [300, 400]
    assert not numbers(program(metered(0))).groups[GROUP].counts.keys() & {"spark.stage.python_time"}


def test_what_a_task_does_not_have_is_absent() -> None:
    """Without spill, shuffle or output there is no sum of them; no time lost to the collector is no time."""
    found = sums(numbers(program(metered(0, metrics={"Shuffle Read Metrics": {}}))))
    assert {name for name in found if name.startswith(("spark.task.", "spark.stage."))} == {
        "spark.task.duration", "spark.task.run_time", "spark.task.cpu_time", "spark.task.scheduler_delay",
        "spark.task.input", "spark.stage.longest_task", "spark.stage.median_task",
    }  # fmt: skip


def test_a_task_that_told_no_metrics_has_a_duration_only() -> None:
    """It was lost with its executor: what it did is not known, and not 0."""
    lost = task(0, 0) | {"Task Metrics": None}
    assert {name for name in sums(numbers(program(lost))) if name.startswith("spark.task.")} == {"spark.task.duration"}


def test_the_exemplar_is_the_largest_and_leads_to_the_attempt_of_the_stage() -> None:
    """With the time of its end, so that the span is found."""
    lines = program(task(0, 0), task(1, 0, seconds=3), task(2, 0))
    found = histogram(numbers(lines), "duration").exemplar
    app = log.application(lines)
    ids = span_ids.of_stage(app, app.stages[0, 0])
    assert found is not None
    assert (found.value, found.time_ms) == (3000, 5200)
    assert (int(found.trace_id, 16), found.span_id) == (ids.trace_id, ids.span_id)


def test_a_smaller_but_newer_value_becomes_the_exemplar_after_a_while() -> None:
    """Whoever looks at a histogram looks for what is slow now."""
    later: dict[str, Any] = {"Launch Time": 2200 + 3_600_000, "Finish Time": 2300 + 3_600_000}
    found = merged([
        aggregator(program(task(0, 0, seconds=3))).aggregate(), aggregator(program(task(1, 0, **later))).aggregate(),
        aggregator(program(task(0, 0, seconds=4))).aggregate(),
    ])  # fmt: skip
    exemplar = histogram(found.applications["shop"], "duration").exemplar
    assert exemplar is not None
    assert exemplar.value == 100


FAILURES: Final = ("spark.tasks.failed", "spark.stages.failed")


def failures(found: Numbers) -> dict[str, int]:
    """The counts of failed tasks and stages."""
    return {name: count for (name, *_), count in found.counts.items() if name in FAILURES}


def test_failures_are_counted_and_start_at_0() -> None:
    """An alert sees the first failure as an increase; what was killed has not failed."""
    lines = program(task(0, 0, error="no"), task(1, 0, Killed=True), task(2, 0))
    before = failures(numbers(lines[:3]))
    assert before == {"spark.tasks.failed": 0, "spark.stages.failed": 0}
    lines[-3:] = [stage(0, end=2900, error="no"), job_ended(0, error="no")]
    found = numbers(lines)
    assert failures(found) == {"spark.tasks.failed": 1, "spark.stages.failed": 1}
    assert found.counts["spark.jobs.failed",] == 1
    good = numbers(program(task(0, 0)))
    assert failures(good) == {"spark.tasks.failed": 0, "spark.stages.failed": 0}
    assert good.counts["spark.jobs.failed",] == 0


def executor(number: int, *, removed: str | None = None, at: int = 1500) -> Line:
    """An executor comes, or goes for a reason."""
    if removed is not None:
        return log.removed(str(number), time=at, reason=removed)
    return log.executor(str(number), cores=2, time=1200)


def test_executors_that_were_released_are_not_lost() -> None:
    """They are gone all the same."""
    found = numbers([
        started(), *(executor(number) for number in range(4)),
        executor(0, removed="Executor killed by driver."), executor(1, removed="Executor heartbeat timed out"),
    ])  # fmt: skip
    assert found.counts == {("spark.executors.added",): 4, ("spark.executors.lost", "heartbeat_lost"): 1}
    assert found.levels["spark.executors.active"] == 2


@pytest.mark.parametrize(
    "removed",
    [
        executor(0, removed="Executor killed by driver."),
        executor(0, removed="Executor decommission: spot instance"),
        executor(0, removed="Finished decommissioning"),
        executor(0, removed="Command exited with code 0"),
        executor(0, removed="Executor heartbeat timed out"),
        executor(0, removed="Command exited with code 137"),
        executor(0, removed=""),
        executor(0, removed="worker lost", at=3000),
        executor(7, removed="worker lost"),
    ],
    ids=lambda line: f"{line['Executor ID']} {line['Timestamp']} {line['Removed Reason']}",
)
def test_metric_and_finding_agree_on_what_is_lost(removed: Line) -> None:
    """A panel that shows a loss that no finding tells, or the other way round, is wrong somewhere."""
    lines = [started(), executor(0), ended(2000), removed]
    counted = sum(count for key, count in numbers(lines).counts.items() if key[0] == "spark.executors.lost")
    found = lost_executors(read(lines)[0], Thresholds())
    assert counted == sum(finding.numbers["lost_executors"] for finding in found)
    assert counted == (
        removed["Removed Reason"] in {"", "Executor heartbeat timed out", "Command exited with code 137"}
    )


def test_levels_are_0_when_the_application_is_over() -> None:
    """Also where it was killed and the log has no end."""
    begun = [started(), executor(0), job(0, [0]), stage(0)]
    begun += [task(number, 0) | {"Event": "SparkListenerTaskStart"} for number in range(3)]
    running = aggregator(begun)
    levels = {"spark.tasks.active": 3, "spark.executors.active": 1, "spark.cores.active": 2}
    assert running.aggregate().applications["shop"].levels == levels
    running.stop()
    nothing = dict.fromkeys(levels, 0)
    assert running.aggregate().applications["shop"].levels == nothing
    assert numbers([*begun, ended()]).levels == nothing


def test_findings_are_counted_by_rule_and_severity() -> None:
    """Where they were found has many values."""
    found = aggregator(program())
    found.found([Finding("spill", "warning", "t", "a", stage=(0, 0)), Finding("spill", "warning", "t", "a", query=7)])
    found.found([Finding("tiny_tasks", "info", "t", "a")])
    counts = found.aggregate().applications["shop"].counts
    assert counts["spark.findings", "spill", "warning"] == 2
    assert counts["spark.findings", "tiny_tasks", "info"] == 1


def many(first: int, last: int, *, application: str = "shop") -> Aggregate:
    """An application with many groups, one task each."""
    lines: list[Line] = [started() | {"App Name": application}]
    for number in range(first, last):
        properties: dict[str, Any] = {"spark.job.description": f"part {chr(0x4E00 + number)}"}
        lines += [job(number, [number], **properties), stage(number)]
        lines += [task(number, number, seconds=number), stage(number, end=9000), job_ended(number)]
    return aggregator(lines).aggregate()


def test_groups_are_bounded() -> None:
    """The first hundred have their own series, all others one, and nothing is lost."""
    found = many(0, 2 * MAX_GROUPS).applications["shop"]
    assert len(found.groups) == MAX_GROUPS + 1
    assert sum(histogram(found, "duration", OTHER).counts) == MAX_GROUPS
    total = sum(sum(group.histograms["spark.task.duration"].counts) for group in found.groups.values())
    assert total == 2 * MAX_GROUPS


def test_merging_is_associative() -> None:
    """Whichever logs are added up first, the totals are the same, also where groups are too many."""
    one, two, three = many(0, 60), many(40, 130), many(100, 220)
    assert merged([merged([one, two]), three]) == merged([one, merged([two, three])])


def test_memory_of_caches_is_what_executors_told_last() -> None:
    """On and off the heap; what went with an executor is gone, and of those that reported nothing, nothing is known."""
    heaps = ((0, 100), (0, 70), (1, 5))
    peaks = [
        task(number, 0, **dict[str, Any]({"Executor ID": str(where)}))
        | {"Task Executor Metrics": {"JVMHeapMemory": 900, "OnHeapStorageMemory": size, "OffHeapStorageMemory": 1}}
        for number, (where, size) in enumerate(heaps)
    ]
    begun = [started(), *(executor(number) for number in range(3)), job(0, [0]), stage(0)]
    assert "spark.storage.memory" not in numbers(begun).levels
    assert numbers([*begun, *peaks]).levels["spark.storage.memory"] == 71 + 6
    assert numbers([*begun, *peaks, executor(1, removed="lost")]).levels["spark.storage.memory"] == 71
    assert numbers([*begun, *peaks, ended()]).levels["spark.storage.memory"] == 0


def test_merging_adds_up() -> None:
    """Counts, sums and levels are those of all; the least and the most are of any."""
    lines = [*program(task(0, 0, seconds=2), end=False), executor(1)]
    other = [*program(task(0, 0, seconds=1, error="no"), task(1, 0, seconds=5), end=False), executor(1), executor(2)]
    found = merged([aggregator(lines).aggregate(), aggregator(other).aggregate()]).applications["shop"]
    duration = histogram(found, "duration")
    assert (duration.sum, duration.least, duration.most, sum(duration.counts)) == (8000, 1000, 5000, 3)
    assert found.counts["spark.tasks.failed",] == 1
    assert found.counts["spark.executors.added",] == 3
    assert found.levels["spark.executors.active"] == 3


def test_what_was_given_back_stays_as_it_is() -> None:
    """Another thread may send it while more is counted."""
    asked = aggregator(program(end=False))
    given = asked.aggregate()
    kept = given.encoded()
    asked.found([Finding("spill", "warning", "t", "a")])
    for event in events_of([metered(0), executor(1)]):
        asked.take(event)
    assert asked.aggregate() != given
    assert given.encoded() == kept


def test_merging_changes_nothing_that_is_merged() -> None:
    """The checkpoint keeps what it holds."""
    one, two = many(0, 3), many(0, 3)
    merged([one, two])
    assert one == two == many(0, 3)


def test_what_is_written_is_read_again() -> None:
    """Nothing is lost in the checkpoint; a histogram with other bucket bounds is refused."""
    aggregate = many(0, 5)
    assert decoded(aggregate.encoded()) == aggregate
    histogram(aggregate.applications["shop"], "duration", "part 一 [result]").counts.append(0)
    with pytest.raises(ValueError, match=r"histogram spark\.task\.duration has other bucket bounds"):
        decoded(aggregate.encoded())
    with pytest.raises(ValueError, match=r"."):
        decoded(b"\x00")


def test_nothing_ever_decreases() -> None:
    """However often it is asked for: sums, counts of buckets and counters; and asking changes nothing."""
    lines = program(*(metered(number, metrics={"JVM GC Time": number % 3}) for number in range(MAX_WAITING + 50)))
    app, last = Application("app-1"), dict[tuple[str, ...], list[int]]()
    asked = MetricsAggregator(app)
    for event in events_of(lines):
        app.apply(event)
        asked.take(event)
        now = flat(asked.aggregate())
        assert all(before <= after for key in last for before, after in zip(last[key], now[key], strict=True))
        last = now
    assert last == flat(aggregator(lines).aggregate())


def flat(aggregate: Aggregate) -> dict[tuple[str, ...], list[int]]:
    """All that adds up."""
    found = {key: [count] for numbers in aggregate.applications.values() for key, count in numbers.counts.items()}
    for numbers_ in aggregate.applications.values():
        for name, group in numbers_.groups.items():
            found |= {(name, metric): [count] for metric, count in group.counts.items()}
            found |= {(name, metric): [each.sum, *each.counts] for metric, each in group.histograms.items()}
    return found


def test_tasks_that_end_after_their_stage_count_with_it() -> None:
    """What was killed with a stage ends later; a stage that was never seen begin is `other`."""
    lines = [*program(metered(0), end=False), metered(1), metered(2, 7)]
    found = numbers(lines)
    assert sum(histogram(found, "duration").counts) == 2
    assert sum(histogram(found, "duration", OTHER).counts) == 1


def test_stages_that_ended_long_ago_are_forgotten() -> None:
    """An application may run for months: stages that ended long before are `other` to late tasks, and none is lost."""
    lines: list[Line] = [started()]
    for number in range(2 * MAX_LATE):
        lines += [
            job(number, [number]),
            stage(number),
            task(number, number),
            stage(number, end=9000),
            job_ended(number),
        ]
    found = numbers([*lines, task(2 * MAX_LATE, MAX_LATE - 1), task(2 * MAX_LATE + 1, MAX_LATE)])
    assert sum(histogram(found, "duration").counts) == 2 * MAX_LATE + 1
    assert sum(histogram(found, "duration", OTHER).counts) == 1


def test_an_application_without_a_name_is_counted() -> None:
    """Its log lost its beginning."""
    assert sum(histogram(numbers(program(metered(0))[1:], name="unknown"), "duration").counts) == 1


def series_counts(aggregate: Aggregate) -> dict[tuple[str, ...], int]:
    """What each series counts."""
    found: dict[tuple[str, ...], int] = {}
    for application, each in aggregate.applications.items():
        found |= {(application, *key): count for key, count in each.counts.items()}
        for name, group in each.groups.items():
            found |= {(application, name, metric): count for metric, count in group.counts.items()}
            found |= {
                (application, name, metric): sum(histogram.counts) for metric, histogram in group.histograms.items()
            }
    return found


def test_a_new_series_begins_with_zero() -> None:
    """Every series, with all its buckets; nothing that has no end to count to."""
    totals = aggregator(logs.program(3)).aggregate()
    zeros = BasePoints(Aggregate()).of(totals)
    assert series_counts(zeros) == dict.fromkeys(series_counts(totals), 0)
    assert series_counts(merged([zeros, totals])) == series_counts(totals)
    assert [each.levels for each in zeros.applications.values()] == [{}]


def test_a_series_begins_with_zero_only_once() -> None:
    """Only what is new does; what is sent with it is as it was."""
    bases, before = BasePoints(Aggregate()), aggregator(logs.program(3)).aggregate()
    bases.sent(before)
    assert series_counts(bases.of(before)) == {}
    begin, *rest = logs.program()
    after = aggregator([begin, *rest[:2], metered(0), *rest[3:]]).aggregate()
    new = dict.fromkeys(series_counts(after).keys() - series_counts(before).keys(), 0)
    assert series_counts(bases.of(merged([before, after]))) == series_counts(before) | new
    assert new


def test_a_counter_that_a_query_gets_later_sets_nothing_else_back() -> None:
    """A phase that a later micro-batch has is new; its batches, sent as 0, would all count again."""
    before = Aggregate()
    before.application("shop").query("orders").durations.add([100, 200], BATCH_DURATION.bounds)
    after, bases = merged([before]), BasePoints(Aggregate())
    after.application("shop").query("orders").count(STREAM_PHASE_DURATION, "addBatch", more=1)
    bases.sent(before)
    base = bases.of(after).applications["shop"].queries["orders"]
    assert base.counts == {(STREAM_PHASE_DURATION.name, "addBatch"): 0}
    assert base.durations == before.applications["shop"].queries["orders"].durations


def test_an_application_that_was_not_sent_for_a_while_is_sent_as_it_was_first() -> None:
    """Else what it does now would be the increase of no range; what it was is not changed by that."""
    before, now = aggregator(logs.program(3)).aggregate(), aggregator(logs.program(5)).aggregate()
    bases = BasePoints(Aggregate())
    bases.sent(before)
    bases.sent(Aggregate(), kept=["shop"])
    kept = before.encoded()
    assert series_counts(bases.of(now)) == series_counts(before)
    assert before.encoded() == kept
    assert series_counts(BasePoints(before).of(now)) == series_counts(before), "the next bridge goes on where it was"
    bases.sent(Aggregate())
    assert set(series_counts(bases.of(now)).values()) == {0}
