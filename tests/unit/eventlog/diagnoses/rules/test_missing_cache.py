from spark_app.eventlog.diagnoses.thresholds import Thresholds
from tests.unit.eventlog.diagnoses.plans import Node, application, found, node, ran
from tests.unit.eventlog.model.test_repeated_work import TASKS, grouped


def test_what_two_queries_compute_from_the_same_rows_is_one_finding() -> None:
    """With both queries as its places; half of the work is done again, if all of it is the aggregate."""
    app = application(ran(0, grouped(), tasks=TASKS), ran(1, grouped(ids=70), tasks=TASKS))
    (finding,) = found(app, "missing_cache", cost_ms=0, cost_ratio=0)
    assert [place.query for place in finding.places] == [0, 1]
    assert "is computed by 2 queries from the same rows, first by query 0 (Query 0)" in finding.text
    assert finding.numbers["times"] == 2
    assert (finding.cost_low_ms or 0) <= (finding.cost_ms or 0) <= (finding.cost_high_ms or 0)
    assert not found(app, "missing_cache", cost_ms=0, cost_ratio=0, repeated_work=3)


def test_a_step_within_another_is_not_told_again() -> None:
    """The join is a part of each aggregate; keeping the aggregate is enough."""

    def joined(ids: int) -> Node:
        rows, shops = node("Scan csv ", number_of_output_rows=9), node("Scan json ", number_of_output_rows=9)
        text = f"BroadcastHashJoin [shop#{ids}], [id#{ids + 1}], Inner, BuildRight"
        join = node("BroadcastHashJoin", rows, node("BroadcastExchange", shops), text=text, number_of_output_rows=9)
        text = f"HashAggregate(keys=[shop#{ids}], functions=[max(day#{ids + 5})])"
        return node("HashAggregate", join, text=text, number_of_output_rows=2)

    app = application(ran(0, joined(1), tasks=TASKS), ran(1, joined(50), tasks=TASKS))
    (finding,) = found(app, "missing_cache", cost_ms=0, cost_ratio=0)
    assert finding.operator == "HashAggregate(keys=[shop#50], functions=[max(day#55)])"


def test_cheap_work_is_not_worth_a_cache() -> None:
    """Less than the least cost."""
    app = application(ran(0, grouped(), tasks=TASKS), ran(1, grouped(ids=70), tasks=TASKS))
    assert Thresholds().cost_ms > 0
    assert not found(app, "missing_cache")
