"""No day on a cluster makes more series than a small Prometheus holds, and no counter shrinks because of that."""

from typing import Final

from spark_app.eventlog.bridge.export import Window, metrics_data
from spark_app.eventlog.bridge.histograms import COUNTED, DURATION
from spark_app.eventlog.bridge.metrics import OTHER, Aggregate, Numbers, QueryStatus
from spark_app.eventlog.bridge.series_names import DAY_SECONDS, MAX_ALL_GROUPS, MAX_APPLICATIONS, SeriesNames
from spark_app.vocabulary import names as stream_names
from spark_app.vocabulary import spark_names as names

RULES: Final = [f"rule {number}" for number in range(5)]
BUDGET: Final = 100_000


TOPICS: Final = [f"topic {number}" for number in range(5)]


def streaming(numbers: Numbers, name: str) -> None:
    """A streaming query that reads five topics: all that a log tells of one, in its last state."""
    query = numbers.query(name)
    for metric in (
        stream_names.STREAM_BATCHES, stream_names.STREAM_RESTARTS, stream_names.READ, stream_names.DUPLICATE,
        stream_names.STREAM_LATE, stream_names.STREAM_STATE_COMMIT, stream_names.STREAM_UNKNOWN_FIELDS,
    ):  # fmt: skip
        query.count(metric)
    for phase in stream_names.STREAM_PHASES:
        query.count(stream_names.STREAM_PHASE_DURATION, phase)
    gauges = (
        stream_names.STREAM_LAST_BATCH, stream_names.STREAM_PROGRESS_AGE, stream_names.STREAM_TRIGGER,
        stream_names.STREAM_INPUT_RATE, stream_names.STREAM_PROCESSED_RATE, stream_names.STREAM_WATERMARK_DELAY,
        stream_names.STREAM_STATE_ROWS, stream_names.STREAM_STATE_MEMORY,
    )  # fmt: skip
    levels: dict[tuple[str, ...], float] = {(metric.name,): 1.0 for metric in gauges}
    levels |= {(stream_names.STREAM_LAG_RECORDS.name, topic): 1.0 for topic in TOPICS}
    query.status = QueryStatus(0, 0, "running", levels)


def application(name: str, *, groups: int, tasks: int = 1, queries: int = 0) -> Aggregate:
    """What one application did: all measures in each of its groups, findings of five rules, and streaming queries."""
    numbers = Numbers()
    for number in range(groups):
        group = numbers.group(f"group {number}")
        group.histogram(DURATION).add([1000] * tasks, DURATION.bounds)
        for metric in (each for each in COUNTED.values() if each.labels):
            group.count(metric, tasks)
        of_stages = (names.STAGE_PYTHON_TIME, names.STAGE_LONGEST_TASK, names.STAGE_MEDIAN_TASK)
        for metric in of_stages:
            group.count(metric, tasks)
    for metric in (each for each in COUNTED.values() if not each.labels):
        numbers.count(metric, more=tasks)
    for metric in (names.TASKS_FAILED_COUNT, names.STAGES_FAILED, names.JOBS_FAILED, names.EXECUTORS_ADDED):
        numbers.count(metric)
    numbers.count(names.EXECUTORS_LOST, "preempted")
    for rule in RULES:
        numbers.count(names.FINDINGS, rule, "warning")
    gauges = (names.TASKS_ACTIVE, names.EXECUTORS_ACTIVE, names.CORES_ACTIVE, names.STORAGE)
    numbers.levels = {metric.name: 1 for metric in gauges}
    for number in range(queries):
        streaming(numbers, f"{name} {number}")
    return Aggregate({name: numbers})


def series(aggregate: Aggregate) -> set[tuple[object, ...]]:
    """The series that Prometheus makes of an aggregate: of a histogram each bucket, the sum and the count."""
    found = set[tuple[object, ...]]()
    for request in metrics_data(aggregate, Window(1, 2, is_delta=False), environment="test"):
        for resource in request.resource_metrics:
            of = resource.resource.attributes["spark.app.name"]
            for metric in resource.scope_metrics[0].metrics:
                for point in metric.data.data_points:
                    key = (of, metric.name, *sorted((point.attributes or {}).items()))
                    bounds = getattr(point, "explicit_bounds", None)
                    parts = ["value"] if bounds is None else [*bounds, "+Inf", "sum", "count"]
                    found |= {(*key, part) for part in parts}
    return found


def of_a_day(applications: int, *, groups: int) -> set[tuple[object, ...]]:
    """The series of applications that run one after the other within a day."""
    known, found = SeriesNames(), set[tuple[object, ...]]()
    for number in range(applications):
        now = number * DAY_SECONDS / applications / 2
        found |= series(known.bounded(application(f"application {number}", groups=groups, queries=1), now=now))
    return found


def tasks(aggregate: Aggregate) -> int:
    """How many tasks are counted under any name."""
    groups = [group for each in aggregate.applications.values() for group in each.groups.values()]
    return sum(sum(group.histograms[DURATION.metric.name].counts) for group in groups)


def test_200_applications_a_day_are_fewer_series_than_the_budget() -> None:
    """As docs/decisions/0014 says; the bound holds for a thousand as well, and for applications of many stages.

    Each streams, too.
    """
    usual, many, wide = (of_a_day(number, groups=groups) for number, groups in ((200, 20), (1000, 20), (1000, 100)))
    assert 60_000 < len(usual) < 80_000
    assert max(len(many), len(wide)) < BUDGET


def test_a_series_of_a_stage_group_costs_25() -> None:
    """More measures with buckets would break the bound."""
    one, two = (series(application("shop", groups=number)) for number in (1, 2))
    assert len(two) - len(one) <= 25


def test_a_streaming_query_costs_48_and_one_for_each_topic() -> None:
    """Of its states only one has a time at once."""
    one, two = (series(application("shop", groups=1, queries=number)) for number in (1, 2))
    assert len(two) - len(one) == 48 + len(TOPICS)


def test_what_has_no_series_of_its_own_is_counted_as_other() -> None:
    """Nothing is lost: tasks of a group beyond the bound, and of an application beyond the bound."""
    known = SeriesNames()
    wide = [known.bounded(application(f"wide {number}", groups=100), now=1) for number in range(30)]
    assert {tasks(each) for each in wide} == {100}
    groups = [name for each in wide for numbers in each.applications.values() for name in numbers.groups]
    assert len([name for name in groups if name != OTHER]) == MAX_ALL_GROUPS
    for number in range(MAX_APPLICATIONS):
        known.bounded(application(f"more {number}", groups=1), now=1)
    late = known.bounded(application("late", groups=3), now=1)
    assert list(late.applications) == [OTHER]
    assert tasks(late) == 3


def test_a_name_keeps_what_it_has_while_it_is_used() -> None:
    """Else the series that it leaves would shrink; after a day without use others may have its place."""
    known = SeriesNames()
    for number in range(MAX_APPLICATIONS + 1):
        known.bounded(application(f"application {number}", groups=1), now=0)
    first, last = application("application 0", groups=1), application(f"application {MAX_APPLICATIONS}", groups=1)
    assert list(known.bounded(last, now=0.9 * DAY_SECONDS).applications) == [OTHER]
    later = 1.1 * DAY_SECONDS
    assert list(known.bounded(last, now=later).applications) == [OTHER], "still used, under the name of others"
    assert list(known.bounded(first, now=later).applications) == ["application 0"]
    assert list(known.bounded(last, now=3 * DAY_SECONDS).applications) == [f"application {MAX_APPLICATIONS}"]
