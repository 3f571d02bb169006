"""Streaming queries that are only observed have the metrics of our own, as far as their log tells."""

import dataclasses
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.sdk.metrics.export import NumberDataPoint

from spark_app.eventlog.bridge.export import Window, metrics_data
from spark_app.eventlog.bridge.metrics import OTHER, Aggregate, decoded, merged
from spark_app.eventlog.bridge.metrics_aggregator import MetricsAggregator
from spark_app.eventlog.bridge.series_names import MAX_ALL_QUERIES, MAX_ALL_TOPICS, SeriesNames
from spark_app.eventlog.bridge.stream_metrics import MAX_TOPICS
from spark_app.eventlog.model.application import Application
from spark_app.vocabulary import names
from spark_app.vocabulary.prometheus_names import label, series
from spark_app.vocabulary.spark_names import WORKLOAD
from spark_app.vocabulary.spark_progress import parse
from tests.contract.dashboards import queries
from tests.contract.metrics import catalogued, names_in
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line, events_of
from tests.unit.eventlog.logs import OPTIONS, Bridged, text
from tests.unit.vocabulary.stream_progresses import progress_json

RECORDED: Final = Path(__file__).parents[3] / "eventlogs" / "streaming"
EVENT: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
PARSED: Final = parse(progress_json())
ENDED: Final = PARSED.ended / 1000
UNKNOWN: Final = {
    series(metric)
    for metric in (names.DEAD_LETTERS, names.STREAM_DELETED, names.STREAM_UNKNOWN_FIELDS, names.STREAM_LAG_TIME)
}
"""What no log tells of a query that observes nothing."""
Points = dict[tuple[str, ...], float]


def begun(run: str = PARSED.run, name: str | None = "orders", at: str = "2025-12-31T23:59:50Z") -> Line:
    """A run of the query begins, ten seconds before its first trigger."""
    return {"Event": f"{EVENT}StartedEvent", "id": PARSED.query, "runId": run, "name": name, "timestamp": at}


def over(run: str = PARSED.run, error: str | None = None) -> Line:
    """It ends."""
    return {"Event": f"{EVENT}TerminatedEvent", "id": PARSED.query, "runId": run, "exception": error}


def idle(at: str) -> Line:
    """A trigger finds nothing to do."""
    return {"Event": f"{EVENT}IdleEvent", "id": PARSED.query, "runId": PARSED.run, "timestamp": at}


def batch(number: int = 0, name: str | None = "orders", **changes: Any) -> Line:
    """A micro-batch that ends at `ENDED`, of a query that reads Kafka and has state."""
    fields = json.loads(progress_json(**{"name": name, "batchId": number, "observedMetrics": {}} | changes))
    return {"Event": f"{EVENT}ProgressEvent", "progress": fields}


def begun_batch(number: int = 0, *, at: float = ENDED - 2) -> Line:
    """The first job of a micro-batch, which has not ended."""
    of = {"sql.streaming.queryId": PARSED.query, "streaming.sql.batchId": str(number), "spark.jobGroup.id": PARSED.run}
    return log.job(number, [], time=round(at * 1000), **of)


def counted(*lines: Line, now: float = ENDED, properties: dict[str, str] | None = None) -> Aggregate:
    """What the lines of an application add up to."""
    return aggregator(lines, now=now, properties=properties).aggregate()


def aggregator(
    lines: Iterable[Line], *, now: float = ENDED, properties: dict[str, str] | None = None
) -> MetricsAggregator:
    """What has counted some lines."""
    app = Application("app-1")
    found = MetricsAggregator(app, clock=lambda: now)
    for event in events_of([log.started(), log.environment(properties or {}), *lines]):
        app.apply(event)
        found.take(event)
    return found


def points(aggregate: Aggregate, *, now: float = ENDED, is_delta: bool = False) -> Points:
    """The values of the metrics of streams by name and labels, without the name of the query; counts of histograms."""
    found = Points()
    window = Window(0, round(now * 1e9), is_delta=is_delta)
    for request in metrics_data(aggregate, window, environment="test"):
        for resource in request.resource_metrics:
            for metric in resource.scope_metrics[0].metrics:
                for point in metric.data.data_points:
                    labels = dict(point.attributes or {})
                    if labels.pop(names.PIPELINE.name, None) is not None:
                        value = point.value if isinstance(point, NumberDataPoint) else point.count
                        found[metric.name, *map(str, labels.values())] = value
    return found


def state(values: Points) -> str | None:
    """The state that the gauges say."""
    return next((key[1] for key, value in values.items() if key[0] == names.STREAM_STATE_NOW.name and value), None)


def test_a_batch_has_the_metrics_of_our_own_queries() -> None:
    """The same names and values: rows, duration, phases, state, watermark, lag by topic, and the time of its end."""
    values = points(counted(begun(), batch()))
    assert values[names.STREAM_BATCHES.name,] == values[names.STREAM_BATCH_DURATION.name,] == 1
    assert values[names.STREAM_PHASE_DURATION.name, "addBatch"] == 1.5
    assert values[names.STREAM_LAST_BATCH.name,] == ENDED
    assert values[names.READ.name,] == PARSED.rows_read
    assert values[names.STREAM_STATE_ROWS.name,] == 75
    assert {(names.STREAM_LAG_RECORDS.name, topic): lag for topic, lag in (PARSED.lag or {}).items()}.items() <= (
        values.items()
    )
    assert state(values) == "running"
    assert values[names.STREAM_STATE_TIME.name, "running"] == ENDED


def test_the_query_is_the_pipeline() -> None:
    """One without a name is `unnamed`, as in the spans of its micro-batches; its id is new at each start."""
    for name, pipeline in (("orders", "orders"), (None, "unnamed"), ("x" * 500, "x" * 100)):
        assert list(counted(begun(name=name), batch(name=name)).applications["shop"].queries) == [pipeline]


def test_strangers_fill_the_dashboard_of_streams() -> None:
    """Each query of its panels finds a series with the labels that it groups by, but for what no log tells."""
    app = counted(begun(), begun_batch(), batch(), over(error="no"), begun("2"), begun_batch(1), properties={})
    names_of_metrics = {key[0] for key in points(app)}
    metrics = [metric for metric in names.METRICS if metric.name in names_of_metrics]
    measured = {series(metric) + part for metric in metrics for part in ("", "_bucket", "_sum", "_count")}
    drawn = [
        query
        for query in queries()
        if query.board.path.stem == "streaming" and query.kind == "prometheus"
        if names_in(query.expression()) & catalogued()
    ]
    trigger = series(names.STREAM_TRIGGER)  # known after some starts, or by the property of the program
    empty = {str(query) for query in drawn if not names_in(query.expression()) & (measured | UNKNOWN | {trigger})}
    assert (bool(drawn), empty) == (True, set())
    assert not measured & UNKNOWN
    assert all(label(names.PIPELINE) in query.content["expr"] for query in drawn)


def test_what_a_log_does_not_tell_is_absent() -> None:
    """Neither a zero of dead letters, nor a state of a query without one, nor rates before there are any."""
    plain = batch(stateOperators=[], sources=[], eventTime={}, inputRowsPerSecond=0.0, processedRowsPerSecond=0.0)
    found = {key[0] for key in points(counted(begun(), plain))}
    assert found == {
        each.name
        for each in (
            names.STREAM_BATCHES, names.STREAM_RESTARTS, names.STREAM_BATCH_DURATION, names.STREAM_PHASE_DURATION,
            names.STREAM_LAST_BATCH, names.STREAM_STATE_NOW, names.STREAM_STATE_TIME,
        )
    }  # fmt: skip


def test_a_program_that_measures_its_queries_is_not_measured_again() -> None:
    """Its counts would be twice as high."""
    assert points(counted(begun(), batch(), properties={WORKLOAD: "streaming.events"})) == {}


def test_a_batch_counts_once() -> None:
    """Also where the log has its end twice, and without the start of its query."""
    assert points(counted(batch(0), batch(0), batch(1)))[names.STREAM_BATCHES.name,] == 2


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([begun()], "starting"),
        ([begun(), begun_batch()], "running"),
        ([begun(), batch(), idle("2026-01-01T00:00:12Z")], "idle"),
        ([begun(), batch(), idle("2026-01-01T00:00:12Z"), begun_batch(1)], "running"),
        ([begun(), batch(), over()], "stopped"),
        ([begun(), batch(), over(error="no")], "failed"),
        ([begun(), batch(), over(error="no"), begun("2")], "starting"),
        ([begun(), batch(), log.ended(round(ENDED * 1000))], "stopped"),
    ],
)
def test_a_query_is_in_the_state_that_its_last_event_says(lines: list[Line], expected: str) -> None:
    """The states of our own queries."""
    assert state(points(counted(*lines))) == expected


def test_a_restart_counts_after_a_failure() -> None:
    """Not after a stop, and not the first start."""
    again = counted(begun(), over(error="no"), begun("2"), over("2"), begun("3"))
    assert points(again)[names.STREAM_RESTARTS.name,] == 1


def test_an_idle_query_keeps_no_figures_of_its_last_batch() -> None:
    """A minute after it they are gone, and the query is alive."""
    lines = [begun(), batch(), *(idle(f"2026-01-01T00:0{minute}:12Z") for minute in range(5))]
    values = points(counted(*lines, now=ENDED + 250), now=ENDED + 250)
    assert (names.STREAM_STATE_ROWS.name,) not in values
    assert values[names.STREAM_STATE_TIME.name, "idle"] == ENDED + 250


def test_a_batch_that_hangs_ages() -> None:
    """From the last report on; a query that waits for its trigger does not."""
    age = (names.STREAM_PROGRESS_AGE.name,)
    assert points(counted(begun(), batch(), begun_batch(1), now=ENDED + 600), now=ENDED + 600)[age] == 600
    assert age not in points(counted(begun(), batch(), now=ENDED + 30), now=ENDED + 30)


def test_a_killed_query_gives_no_sign_of_life() -> None:
    """It reported every ten seconds and is silent for an hour: its last sign is a minute after the last report."""
    lines = [begun(), batch(), idle("2026-01-01T00:00:12Z"), idle("2026-01-01T00:00:22Z")]
    found = counted(*lines, now=ENDED + 3600)
    (query,) = found.applications["shop"].queries.values()
    assert query.status is not None
    assert query.status.known_at == pytest.approx(ENDED + 20 + 60)
    kinds = {metric.name: metric.kind for metric in names.METRICS}
    assert "gauge" not in {kinds[key[0]] for key in points(found, now=ENDED + 3600)}


def test_a_query_with_a_long_trigger_is_not_taken_for_dead() -> None:
    """How often it reports is known after the second report only; three times that is no silence yet."""
    seldom = [batch(0), batch(1, timestamp="2026-01-01T00:30:00.000Z")]
    for lines, now in ((seldom[:1], ENDED + 1700), (seldom, ENDED + 1800 + 3600)):
        values = points(counted(begun(), *lines, now=now), now=now)
        assert values[names.STREAM_STATE_TIME.name, "running"] == now


def test_a_log_of_the_past_says_nothing_of_now() -> None:
    """Of a program that was killed last week, or has ended, only counts are exported."""
    week = ENDED + 7 * 86_400
    for lines in ([begun(), batch(), begun_batch(1)], [begun(), batch(), over()]):
        kinds = {metric.name: metric.kind for metric in names.METRICS}
        assert "gauge" not in {kinds[key[0]] for key in points(counted(*lines, now=week), now=week)}


def test_the_newest_of_several_runs_says_how_a_query_is() -> None:
    """A program that failed and was started again: counts add up, and one state holds, by the times of the log."""
    failed = counted(begun(), batch(), over(error="no"))
    again = counted(begun("2"), batch(runId="2", timestamp="2026-01-01T00:01:00.000Z"), now=ENDED + 60)
    for order in ([failed, again], [again, failed]):
        values = points(merged(order), now=ENDED + 60)
        assert (values[names.STREAM_BATCHES.name,], state(values)) == (2, "running")


def test_totals_survive_a_checkpoint() -> None:
    """And what a bridge sends once as deltas counts once."""
    found = counted(begun(), batch())
    assert decoded(found.encoded()) == found
    measured = aggregator([begun(), batch()])
    deltas = [points(measured.drained(), is_delta=True) for _ in range(2)]
    assert [each.get((names.STREAM_BATCHES.name,)) for each in deltas] == [1, None]
    assert (names.STREAM_BATCH_DURATION.name,) not in deltas[1]


def many(number: int, topics: int) -> Aggregate:
    """A program whose query, and the topics that it reads, have other names than those of other programs."""
    offsets = {
        end: {f"{number}-{topic}": {"0": value} for topic in range(topics)}
        for end, value in (("startOffset", 0), ("endOffset", 1), ("latestOffset", 2))
    }
    return counted(begun(name=f"query {number}"), batch(name=f"query {number}", sources=[offsets]))


def test_labels_are_bounded() -> None:
    """The first queries and topics of a day have series, by their first use, and the rest of the queries is `other`."""
    known, queries_, topics = SeriesNames(), set[str](), set[str]()
    for number in range(MAX_ALL_QUERIES + 5):
        (numbers,) = known.bounded(many(number, MAX_TOPICS + 3), now=1).applications.values()
        queries_ |= numbers.queries.keys()
        for query in numbers.queries.values():
            levels = {} if query.status is None else query.status.levels
            topics |= {key[1] for key in levels if key[0] == names.STREAM_LAG_RECORDS.name}
    assert len(queries_ - {OTHER}) == MAX_ALL_QUERIES
    assert (OTHER in queries_, len(topics)) == (True, MAX_ALL_TOPICS)


@pytest.mark.parametrize("version", ["3.5.9", "4.2.0"])
def test_a_bridge_exports_the_queries_of_a_recorded_program(version: str, tmp_path: Path) -> None:
    """One of a stranger, with a Spark of each kind; the series begin with 0, and a restart counts nothing again."""
    folder = tmp_path / "logs"
    folder.mkdir()
    shutil.copy(RECORDED / f"{version}.zst", folder / "app-1.zstd")
    for _ in range(2):
        bridged = Bridged(folder)
        bridged.until_done()
        values = [
            points(each)[names.STREAM_BATCHES.name,] for each in bridged.collector.aggregates if each.applications
        ]
        assert values[-1] == 5
        bridged.close()


def test_a_bridge_says_how_a_query_is_that_runs(tmp_path: Path) -> None:
    """With the state of now, although the log ends with a micro-batch of the past."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "app-1.inprogress").write_text(text(log.started(), log.environment({}), begun(), batch()))
    bridged = Bridged(folder, options=dataclasses.replace(OPTIONS, dead_after=10**9))
    bridged.until(lambda: bool(bridged.collector.aggregates and bridged.collector.aggregates[-1].applications))
    (query,) = bridged.collector.aggregates[-1].applications["shop"].queries.values()
    assert query.status is not None
    assert query.status.state == "running"
    bridged.kill()


def test_a_stop_is_known_later_than_the_life_before() -> None:
    """The clock of the bridge is ahead of the last event: by its times, a stopped query would look as if it died."""
    alive, stopped = ([begun(), batch()], [begun(), batch(), over()])
    found = [points(counted(*lines, now=ENDED + at), now=ENDED + at) for lines, at in ((alive, 20), (stopped, 30))]
    times = [found[0][names.STREAM_STATE_TIME.name, "running"], found[1][names.STREAM_STATE_TIME.name, "stopped"]]
    assert times == [ENDED + 20, ENDED + 30]
